"""What plugins import; see each module."""
