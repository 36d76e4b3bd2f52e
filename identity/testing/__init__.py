"""What plugin authors test with: fixtures, factories and contracts. Nothing here is imported by the service."""
