"""Reads what a state folder holds: sprints, stories, their histories and logs."""
