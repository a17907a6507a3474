"""The composition root and the use cases behind the commands."""
