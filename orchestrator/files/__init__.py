"""Files in trees that are not trusted, atomic replacement, disk."""
