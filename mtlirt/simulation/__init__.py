"""Designs and generators of answers with known truth."""
