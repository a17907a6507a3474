"""What real projects, answers and backlogs showed to go wrong: input, right value, and where the kind was seen."""
