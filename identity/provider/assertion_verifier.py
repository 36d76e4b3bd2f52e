"""AssertionVerifier: assertions of outside issuers, as grants and as client authentication (RFC 7523)."""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import ClassVar

from identity.crypto.jwt import UnverifiedToken
from identity.domain.applications import ApplicationClient
from identity.domain.federated_credentials import FederatedCredential
from identity.provider.context import Context
from identity.provider.errors import InvalidClient
from identity.provider.grant_type import Authorization, TokenRequest


@dataclass(frozen=True, slots=True, kw_only=True)
class VerifiedAssertion:
    """What an assertion allows, None if it authenticates an application, and the federated credential that trusts it,
    if any. It counts once: ``single_use_id`` is unique among the assertions of ``issuer``, and its use is remembered
    until ``ends_at``."""

    authorization: Authorization | None
    credential: FederatedCredential | None
    issuer: str
    single_use_id: str
    ends_at: datetime


class AssertionVerifier(ABC):
    """Verifies assertions that service users and applications do not sign themselves. ``discovery_members`` are what it
    adds to the discovery document. ``uses_federated_credentials`` is true if it trusts the issuers that federated
    credentials name: only then the console offers to add some."""

    name: ClassVar[str]
    discovery_members: ClassVar[Mapping[str, object]] = {}
    uses_federated_credentials: ClassVar[bool] = False

    @abstractmethod
    def accepts(self, token: UnverifiedToken) -> bool:
        """True if the assertion looks like one that it verifies; the first verifier that accepts it decides."""

    @abstractmethod
    def verify(self, token: UnverifiedToken, request: TokenRequest, context: Context) -> VerifiedAssertion:
        """Verify the signature, then each claim. Writes nothing but refusals in the audit trail. Raises OAuthError; up
        to the signature always the same InvalidGrant."""

    def verify_client(
        self, token: UnverifiedToken, client: ApplicationClient | None, context: Context
    ) -> VerifiedAssertion:
        """The same for an assertion that authenticates the application which the request names. ``client`` is None if
        it is unknown, deactivated or authenticates otherwise: this must look like a wrong signature. Raises
        InvalidClient, by default for each."""
        token.verify_with_unknown_key()
        raise InvalidClient("client authentication failed", reason="the issuer authenticates no applications")
