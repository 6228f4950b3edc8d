"""oombot: which phase ran out of memory, on which rank, and the one change to try."""
