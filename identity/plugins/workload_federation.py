"""Workload federation: a token of an outside issuer is the assertion of the JWT bearer grant (RFC 7523 §2.1).

A token request::

    POST /oauth/v2/token
    Content-Type: application/x-www-form-urlencoded

    grant_type=urn%3Aietf%3Aparams%3Aoauth%3Agrant-type%3Ajwt-bearer&scope=openid&client_id=USER_ID&assertion=eyJ…

The rules, in the order in which they are checked:

- ``client_id`` names the service user, so a token never chooses whom it stands for. Tokens of this service itself are
  refused.
- The service user and its organization are active, and it has a federated credential of the issuer. The keys come from
  that credential, never from the token, and the key determines the algorithm.
- Up to the signature all failures have the same message and take the same work.
- ``aud`` contains the service's issuer, ``exp`` is at most a day away, ``iat`` and ``nbf`` are not in the future.
- All conditions of one federated credential hold. Anyone can get a valid token of a public issuer, so the message names
  the claim that does not match, but never what it is compared with.
- For a service user with a role at the instance only a credential that instance managers marked counts.
- Each token counts once, by ``jti``, else by its digest, in the transaction that stores the tokens. These end with the
  federated credential.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from identity.api.crypto import (
    InvalidKey,
    InvalidTokenSignature,
    MalformedToken,
    SignatureAlgorithm,
    UnverifiedToken,
    token_digest,
)
from identity.api.endpoints import Context, InvalidGrant, InvalidRequest
from identity.api.entities import FederatedCredential, Subject
from identity.api.grants import AssertionClaims, AssertionVerifier, TokenRequest, VerifiedAssertion
from identity.api.plugins import duration, hookimpl

#: The same message as for assertions of service users.
INVALID_ASSERTION_MESSAGE = "the assertion is not valid"

_TYPES = frozenset({"jwt", "jose"})


class WorkloadTokenRefused(Exception):
    """Why a token is refused up to its signature; for the audit trail only."""


class WorkloadTokenVerifier(AssertionVerifier):
    """Tokens of CI systems, clusters and clouds."""

    name = "workload_federation"

    def __init__(self, max_lifetime: timedelta) -> None:
        self._max_lifetime = max_lifetime

    def accepts(self, token: UnverifiedToken) -> bool:
        """True if the issuer is a URL. SPIFFE tokens need none; their subject is one."""
        issuer = token.claims.get("iss", token.claims.get("sub"))
        return isinstance(issuer, str) and "://" in issuer

    def verify(self, token: UnverifiedToken, request: TokenRequest, context: Context) -> VerifiedAssertion:
        user_id = request.parameters.get_value("client_id")
        if user_id is None and not _is_own(token, context):
            raise InvalidRequest("client_id must name the service user that the token stands for")
        try:
            subject, credentials, claims = self._verify_signature(token, user_id or "", context)
        except (MalformedToken, InvalidTokenSignature, InvalidKey, WorkloadTokenRefused) as refusal:
            context.services.service_users.record_refusal(None, str(refusal))
            raise InvalidGrant(INVALID_ASSERTION_MESSAGE, reason=str(refusal)) from None
        try:
            return self._check_claims(token, claims, subject, credentials, context)
        except InvalidGrant as refusal:
            context.services.service_users.record_refusal(subject, refusal.audit_reason)
            raise

    def _verify_signature(
        self, token: UnverifiedToken, user_id: str, context: Context
    ) -> tuple[Subject, Sequence[FederatedCredential], dict[str, Any]]:
        """The service user, the credentials whose keys verify the token, and its claims."""
        header, algorithm = token.header, token.header["alg"]
        found = context.services.service_users.find_federated_credentials(user_id)
        reason = "no active service user with a federated credential"
        if _is_own(token, context):
            found, reason = None, "the service's own issuer"
        if algorithm not in SignatureAlgorithm.names() or str(header.get("typ", "JWT")).lower() not in _TYPES:
            found, reason = None, "alg or typ is not accepted"
        if found is not None:
            subject, credentials = found
            issued = [credential for credential in credentials if credential.is_issued_by(token.claims)]
            reason = "no federated credential of this issuer"
            for source in dict.fromkeys(credential.key_source for credential in issued):
                alike = [credential for credential in issued if credential.key_source == source]
                try:
                    key = context.services.assertions.find_issuer_key(header, alike[0], subject.organization.id)
                except InvalidKey as problem:
                    key, reason = None, str(problem)
                else:
                    reason = "no key of this kid and alg"
                if key is not None:
                    return subject, alike, token.verify_with_jwk(key, algorithm=algorithm)
        token.verify_with_unknown_key()
        raise WorkloadTokenRefused(reason)

    def _check_claims(
        self,
        token: UnverifiedToken,
        claims: dict[str, Any],
        subject: Subject,
        credentials: Sequence[FederatedCredential],
        context: Context,
    ) -> VerifiedAssertion:
        # Without the signature: some have several valid forms.
        signing_input = token.text.rpartition(".")[0]
        checked = AssertionClaims(claims, context, lambda description, reason: InvalidGrant(description, reason=reason))
        checked.check_audience_contains(context.issuer)
        ends_at = checked.check_times(max_lifetime=self._max_lifetime)
        jti = checked.read_jti(is_required=False)
        unmet = {credential.find_unmet_claim(claims): credential for credential in credentials}
        if None not in unmet:
            names = ", ".join(sorted(str(name) for name in unmet))
            checked.refuse(f"no federated credential of this service user accepts the claim {names}")
        met = [credential for credential in credentials if credential.find_unmet_claim(claims) is None]
        if context.services.instance_managers.is_instance_manager(subject.user.id):
            met = [credential for credential in met if credential.instance_managed]
        if not met:
            checked.refuse("the service user has a role at the instance: only instance managers add its credentials")
        return VerifiedAssertion(
            subject=subject,
            credential=met[0],
            # With the organization, so that one that gives an issuer keys of its own cannot use up tokens of another.
            issuer=f"{subject.organization.id} {met[0].issuer}",
            single_use_id=f"jti {jti}" if jti is not None else f"digest {token_digest(signing_input).hex()}",
            ends_at=ends_at,
        )


def _is_own(token: UnverifiedToken, context: Context) -> bool:
    """True for tokens of this service, which are no assertions here."""
    return context.services.service_users.is_own_issuer(str(token.claims.get("iss", "")))


class WorkloadFederationPlugin:
    """Tokens of outside issuers as assertions of service users."""

    hookspecs = 1

    @dataclass(frozen=True)
    class Settings:
        """How strict tokens of outside issuers are judged."""

        max_token_lifetime: timedelta = duration(
            "How far in the future the exp of a workload's token may be.", "24h", at_most=timedelta(days=7)
        )

    def __init__(self, settings: Settings) -> None:
        self.settings = settings

    @hookimpl
    def identity_assertion_verifiers(self) -> Iterable[AssertionVerifier]:
        """Tokens of workloads."""
        return [WorkloadTokenVerifier(self.settings.max_token_lifetime)]
