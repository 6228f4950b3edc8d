"""Raw config.json and tensor headers from the Hugging Face hub, its cache, or a folder."""
