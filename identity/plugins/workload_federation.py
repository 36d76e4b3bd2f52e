"""Workload federation: a token of an outside issuer is an assertion, for a service user as the JWT bearer grant
(RFC 7523 §2.1), for an application as client authentication (§2.2).

A token request::

    POST /oauth/v2/token
    Content-Type: application/x-www-form-urlencoded

    grant_type=urn%3Aietf%3Aparams%3Aoauth%3Agrant-type%3Ajwt-bearer&scope=openid&client_id=USER_ID&assertion=eyJ…

An application sends its token with any request that authenticates it::

    grant_type=client_credentials&client_id=CLIENT_ID
    &client_assertion_type=urn%3Aietf%3Aparams%3Aoauth%3Aclient-assertion-type%3Ajwt-bearer&client_assertion=eyJ…

The rules, in the order in which they are checked:

- ``client_id`` names the service user or application, so a token never chooses whom it stands for. Tokens of this
  service itself are refused. An application has the authentication method ``private_key_jwt``.
- The service user or application and its organization are active, and it has a federated credential of the issuer. The
  keys come from that credential, never from the token, and the key determines the algorithm.
- Up to the signature all failures have the same message and take the same work.
- ``aud`` contains the service's issuer, ``exp`` is at most a day away, ``iat`` and ``nbf`` are not in the future.
- All conditions of one federated credential hold. Anyone can get a valid token of a public issuer, so the message names
  the claim that does not match, but never what it is compared with.
- For a service user with a role at the instance, and for an application of the instance, only a credential that
  instance managers marked counts.
- Each token counts once, by ``jti``, else by its digest: for a service user in the transaction that stores the tokens,
  for an application in one of its own. Tokens that the service user or application got for itself end with the
  federated credential.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
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
from identity.api.endpoints import Context, InvalidClient, InvalidGrant, InvalidRequest
from identity.api.entities import ApplicationClient, FederatedCredential, Subject
from identity.api.grants import (
    AssertionClaims,
    AssertionVerifier,
    Authorization,
    Scope,
    TokenRequest,
    VerifiedAssertion,
)
from identity.api.plugins import duration, hookimpl

#: The same message as for assertions of service users.
INVALID_ASSERTION_MESSAGE = "the assertion is not valid"

_TYPES = frozenset({"jwt", "jose"})


class WorkloadTokenRefused(Exception):
    """Why a token is refused up to its signature; for the audit trail only."""


_REFUSALS = (MalformedToken, InvalidTokenSignature, InvalidKey, WorkloadTokenRefused)


class WorkloadTokenVerifier(AssertionVerifier):
    """Tokens of CI systems, clusters and clouds."""

    name = "workload_federation"
    uses_federated_credentials = True

    def __init__(self, max_lifetime: timedelta) -> None:
        self._max_lifetime = max_lifetime

    def accepts(self, token: UnverifiedToken) -> bool:
        """True if the issuer is a URL. SPIFFE tokens need none; their subject is one. Assertions with a type of their
        own are others'."""
        if str(token.header.get("typ", "")).lower().endswith("+jwt"):
            return False
        issuer = token.claims.get("iss", token.claims.get("sub"))
        return isinstance(issuer, str) and "://" in issuer

    def verify(self, token: UnverifiedToken, request: TokenRequest, context: Context) -> VerifiedAssertion:
        user_id = request.parameters.get_value("client_id")
        if user_id is None and not _is_own(token, context):
            raise InvalidRequest("client_id must name the service user that the token stands for")
        services = context.services
        found = services.federated_credentials.find_with_service_user(user_id or "")
        try:
            if found is None:
                token.verify_with_unknown_key()
                raise WorkloadTokenRefused("no active service user with a federated credential")
            subject, credentials = found
            trusting, claims = _verify_signature(token, credentials, subject.organization.id, context)
        except _REFUSALS as refusal:
            services.service_users.record_refusal(None, str(refusal))
            raise InvalidGrant(INVALID_ASSERTION_MESSAGE, reason=str(refusal)) from None
        checked = AssertionClaims(claims, context, lambda description, reason: InvalidGrant(description, reason=reason))
        reason = "the service user has a role at the instance"
        try:
            verified = self._check_claims(
                token,
                checked,
                trusting,
                subject.organization.id,
                instance_reason=reason if services.instance_managers.is_instance_manager(subject.user.id) else "",
            )
        except InvalidGrant as refusal:
            services.service_users.record_refusal(subject, refusal.audit_reason)
            raise
        return replace(verified, authorization=_build_authorization(subject, verified, request, context))

    def verify_client(
        self, token: UnverifiedToken, client: ApplicationClient | None, context: Context
    ) -> VerifiedAssertion:
        services = context.services
        try:
            if client is None:
                token.verify_with_unknown_key()
                raise WorkloadTokenRefused("unknown client, deactivated, or it uses another authentication method")
            credentials = services.federated_credentials.list_for_application(client.id)
            trusting, claims = _verify_signature(token, credentials, client.organization.id, context)
        except _REFUSALS as refusal:
            raise InvalidClient("client authentication failed", reason=str(refusal)) from None
        checked = AssertionClaims(
            claims, context, lambda description, reason: InvalidClient(description, reason=reason)
        )
        is_of_instance = services.applications.is_instance_managed(client.application)
        return self._check_claims(
            token,
            checked,
            trusting,
            client.organization.id,
            instance_reason="the application belongs to the instance" if is_of_instance else "",
        )

    def _check_claims(
        self,
        token: UnverifiedToken,
        checked: AssertionClaims,
        credentials: Sequence[FederatedCredential],
        organization_id: str,
        *,
        instance_reason: str,
    ) -> VerifiedAssertion:
        """``instance_reason`` says why only a credential that instance managers marked counts; empty if any does."""
        # Without the signature: some have several valid forms.
        signing_input = token.text.rpartition(".")[0]
        checked.check_audience_contains(checked.context.issuer)
        ends_at = checked.check_times(max_lifetime=self._max_lifetime)
        jti = checked.read_jti(is_required=False)
        unmet = {credential.find_unmet_claim(checked.claims) for credential in credentials}
        if None not in unmet:
            checked.refuse(f"no federated credential accepts the claim {', '.join(sorted(map(str, unmet)))}")
        met = [credential for credential in credentials if credential.find_unmet_claim(checked.claims) is None]
        if instance_reason:
            met = [credential for credential in met if credential.instance_managed]
        if not met:
            checked.refuse(f"{instance_reason}: only instance managers add its credentials")
        return VerifiedAssertion(
            authorization=None,
            credential=met[0],
            # With the organization, so that one that gives an issuer keys of its own cannot use up tokens of another.
            issuer=f"{organization_id} {met[0].issuer}",
            single_use_id=f"jti {jti}" if jti is not None else f"digest {token_digest(signing_input).hex()}",
            ends_at=ends_at,
        )


def _verify_signature(
    token: UnverifiedToken, credentials: Sequence[FederatedCredential], organization_id: str, context: Context
) -> tuple[Sequence[FederatedCredential], dict[str, Any]]:
    """The credentials whose keys verify the token, and its claims. Raises one of _REFUSALS, always with the same
    work."""
    header, algorithm = token.header, token.header["alg"]
    reason = "no federated credential of this issuer"
    issued = [credential for credential in credentials if credential.is_issued_by(token.claims)]
    if _is_own(token, context):
        issued, reason = [], "the service's own issuer"
    if algorithm not in SignatureAlgorithm.names() or str(header.get("typ", "JWT")).lower() not in _TYPES:
        issued, reason = [], "alg or typ is not accepted"
    for source in dict.fromkeys(credential.key_source for credential in issued):
        alike = [credential for credential in issued if credential.key_source == source]
        try:
            key = context.services.assertions.find_issuer_key(header, alike[0], organization_id)
        except InvalidKey as problem:
            key, reason = None, str(problem)
        else:
            reason = "no key of this kid and alg"
        if key is not None:
            return alike, token.verify_with_jwk(key, algorithm=algorithm)
    token.verify_with_unknown_key()
    raise WorkloadTokenRefused(reason)


def _build_authorization(
    subject: Subject, verified: VerifiedAssertion, request: TokenRequest, context: Context
) -> Authorization:
    """For the service user itself. Raises InvalidScope."""
    requested = request.parameters.get_space_delimited("scope") or (Scope.OPENID,)
    Scope.require_openid(requested)
    return Authorization(
        subject=subject,
        client=None,
        client_id=subject.user.id,
        requested_scopes=requested,
        authenticated_at=context.now,
        federated_credential_id=None if verified.credential is None else verified.credential.id,
    )


def _is_own(token: UnverifiedToken, context: Context) -> bool:
    """True for tokens of this service, which are no assertions here."""
    return context.services.federated_credentials.is_own_issuer(str(token.claims.get("iss", "")))


class WorkloadFederationPlugin:
    """Tokens of outside issuers as assertions of service users and applications."""

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
