"""Test tools for plugin authors: fixtures, factories and contracts. The service does not import this package."""

import pytest

# Before they are imported, so that pytest rewrites their assertions.
pytest.register_assert_rewrite("identity.testing.grant_type_contract", "identity.testing.plugin_contract")
