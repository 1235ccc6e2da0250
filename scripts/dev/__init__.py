"""Development tools: soak tests, fuzzing, documentation."""
