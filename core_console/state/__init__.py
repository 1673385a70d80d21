"""The state at rest: looking at it, checking it, backing it up and putting a backup back."""
