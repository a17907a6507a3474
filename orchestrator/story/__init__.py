"""One story: planning, tasks, reviews, tests, merge. Engine-free; names no persona."""
