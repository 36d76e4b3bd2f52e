"""AssertionVerifier: assertions of outside issuers in the JWT bearer grant."""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from datetime import datetime
from typing import ClassVar

from identity.crypto.jwt import UnverifiedToken
from identity.domain.federated_credentials import FederatedCredential
from identity.domain.users import Subject
from identity.provider.context import Context
from identity.provider.grant_type import TokenRequest


@dataclass(frozen=True, slots=True, kw_only=True)
class VerifiedAssertion:
    """Who gets tokens for an assertion, by which credential. It counts once: ``single_use_id`` is unique among the
    assertions of ``issuer``, and its use is remembered until ``ends_at``."""

    subject: Subject
    credential: FederatedCredential
    issuer: str
    single_use_id: str
    ends_at: datetime


class AssertionVerifier(ABC):
    """Verifies assertions that service users do not sign themselves."""

    name: ClassVar[str]

    @abstractmethod
    def accepts(self, token: UnverifiedToken) -> bool:
        """True if the assertion looks like one that it verifies; the first verifier that accepts it decides."""

    @abstractmethod
    def verify(self, token: UnverifiedToken, request: TokenRequest, context: Context) -> VerifiedAssertion:
        """Verify the signature, then each claim. Writes nothing but refusals in the audit trail. Raises OAuthError; up
        to the signature always the same InvalidGrant."""
