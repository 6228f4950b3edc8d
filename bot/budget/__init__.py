"""Memory arithmetic of one replica: bytes in, bytes out."""
