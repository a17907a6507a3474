"""SQL texts and SQL in strings."""
