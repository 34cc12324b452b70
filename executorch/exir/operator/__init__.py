"""Operators and their variants, by schema."""
