"""Values in, findings out."""
