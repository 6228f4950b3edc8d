"""The words: frozen values from the standard library, shared by every room."""
