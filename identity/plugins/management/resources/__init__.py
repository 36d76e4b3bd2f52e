"""One file per resource of the API, each with its operations."""
