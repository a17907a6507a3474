"""Doctor, retention."""
