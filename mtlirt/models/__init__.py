"""The verbs: what a user calls to fit a model."""
