"""The one error that people at the desk get to see."""


class ShelfError(Exception):
    """Something the person at the desk can put right; the message says what it is."""
