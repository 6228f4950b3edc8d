"""Will this model start on these cards, how large is its pool, which rank limits: a question read, refused or answered."""
