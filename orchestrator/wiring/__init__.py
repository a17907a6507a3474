"""Builds the object graph. The only room that imports adapters."""
