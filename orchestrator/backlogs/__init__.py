"""Backlogs read and written: CSV, YAML, JSON, Markdown."""
