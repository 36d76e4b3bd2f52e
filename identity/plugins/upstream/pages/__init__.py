"""The way to providers and back, and what people and managers see of it."""
