"""How well is an answer got out of a model's text: `extract` and what else could be used, measured in one run."""
