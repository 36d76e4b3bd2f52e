"""Tests of plugins: a complete service in the test process, browsers, relying parties, and contracts."""

from identity.storage.contract import StorageContract
from identity.testing.browser import Browser, set_password
from identity.testing.fixtures import WorldFactory
from identity.testing.grant_type_contract import GrantTypeContract, ValidTokenRequest
from identity.testing.plugin_contract import PluginContract
from identity.testing.relying_party import RelyingParty
from identity.testing.response_checks import check_oauth_error, check_page, check_token_response
from identity.testing.signer_contract import SignerContract
from identity.testing.world import World

__all__ = [
    "Browser",
    "GrantTypeContract",
    "PluginContract",
    "RelyingParty",
    "SignerContract",
    "StorageContract",
    "ValidTokenRequest",
    "World",
    "WorldFactory",
    "check_oauth_error",
    "check_page",
    "check_token_response",
    "set_password",
]
