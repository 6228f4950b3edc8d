"""The door of the terminal."""
