"""The door of the browser: pages, the read-only API, health and metrics."""
