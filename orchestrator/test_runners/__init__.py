"""Suites run by the runner of the project."""
