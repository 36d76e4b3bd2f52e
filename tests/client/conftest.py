"""The fixture of the kit, without relying on how the kit is installed."""

from identity_client.pytest_plugin import identity_issuer

__all__ = ["identity_issuer"]
