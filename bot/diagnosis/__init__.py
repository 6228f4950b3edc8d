"""Evidence in, Diagnosis out."""
