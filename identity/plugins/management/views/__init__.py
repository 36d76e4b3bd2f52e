"""One file per resource of the API."""
