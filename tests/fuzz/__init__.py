"""Promises of `extract` for any bytes."""
