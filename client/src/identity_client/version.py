"""The version, which is also that of the service."""

__version__ = "0.1.0"
