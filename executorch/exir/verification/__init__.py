"""Checks that a graph keeps the rules of its dialect."""
