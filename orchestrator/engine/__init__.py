"""Stories as durable workflows."""
