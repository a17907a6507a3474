"""Shelf: the desk of a small lending library."""

__version__ = "1.0.0"
