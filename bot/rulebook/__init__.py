"""rules/*.toml as a checked, compiled Rulebook."""
