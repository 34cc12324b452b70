"""Saving and loading of exported programs in any dialect."""
