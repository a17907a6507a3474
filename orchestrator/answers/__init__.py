"""From a model's text to a value one can trust (spec 6)."""
