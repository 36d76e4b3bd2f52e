"""The operations of each resource of the API."""
