"""The figures of README.md and RESULTS.md, measured again."""
