"""Files to Responses."""
