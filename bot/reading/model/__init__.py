"""config.json and tensor headers -> what the engine makes of them: cache shapes and tensors. The only place that interprets a config."""
