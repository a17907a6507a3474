"""Environments of projects: interpreters, packages, layers, fetches."""
