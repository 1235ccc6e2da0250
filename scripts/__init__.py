"""What is run beside the package: its measurements, its upkeep."""
