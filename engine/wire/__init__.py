"""What processes of an engine say to each other, and how it becomes bytes. Imports no torch."""
