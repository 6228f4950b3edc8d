"""rules/*.toml as one Rulebook, and what is wrong with it."""
