"""JSON out of a reply that is not quite JSON."""
