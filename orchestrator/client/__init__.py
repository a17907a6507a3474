"""Sends people's commands to a daemon over HTTP, or to the state folder itself, by the same methods."""
