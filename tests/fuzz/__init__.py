"""Coverage-guided fuzzing of `extract` (`make fuzz`); the targets themselves run on their seeds in the test suite."""
