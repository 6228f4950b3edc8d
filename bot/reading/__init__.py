"""Text in, Evidence out."""
