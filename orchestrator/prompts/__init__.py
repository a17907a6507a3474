"""Prompt files rendered stable-first."""
