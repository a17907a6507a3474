"""Every byte in or out."""
