"""One file for each thing a person can ask; each returns a Reply."""
