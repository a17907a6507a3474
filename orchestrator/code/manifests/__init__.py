"""Manifests and lock files: what they declare."""
