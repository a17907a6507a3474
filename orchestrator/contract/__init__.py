"""The closed world: freeze, manifests, imports, enforce."""
