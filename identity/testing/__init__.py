"""What plugin authors test with: fixtures, factories and contracts. Nothing here is imported by the service."""

import pytest

# Before they are imported, so that a failing assert shows what it compared.
pytest.register_assert_rewrite("identity.testing.grant_type_contract", "identity.testing.plugin_contract")
