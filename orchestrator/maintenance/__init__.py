"""Doctor, backup, restore, retention."""
