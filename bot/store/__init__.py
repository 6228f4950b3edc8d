"""The only SQL: incidents, search, deliveries, installations."""
