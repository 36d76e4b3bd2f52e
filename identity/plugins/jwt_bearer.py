"""Grant urn:ietf:params:oauth:grant-type:jwt-bearer: a service user presents a signed assertion (RFC 7523, §2.3, §5.1).

A token request::

    POST /oauth/v2/token
    Content-Type: application/x-www-form-urlencoded

    grant_type=urn%3Aietf%3Aparams%3Aoauth%3Agrant-type%3Ajwt-bearer&scope=openid&assertion=eyJ…
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from functools import lru_cache, partial
from typing import Any

from identity.api.crypto import (
    InvalidKey,
    InvalidTokenSignature,
    JwkPublicKey,
    MalformedToken,
    PublicKey,
    SignatureAlgorithm,
    UnverifiedToken,
)
from identity.api.endpoints import Context, InvalidGrant
from identity.api.entities import ServiceUserKey, Subject
from identity.api.grants import (
    AccessToken,
    AssertionClaims,
    AssertionVerifier,
    Authorization,
    ClientRequirement,
    GrantType,
    PreviewInput,
    RefreshToken,
    Scope,
    SingleUseCredential,
    TokenRequest,
)
from identity.api.plugins import duration, hookimpl, setting
from identity.api.services import Record
from identity.api.storage import AlreadyUsed

#: All refusals up to the signature have the same message, which discloses nothing.
INVALID_ASSERTION_MESSAGE = "the assertion is not valid"

_TYPES = frozenset({None, "JWT", "jwt"})
_MAX_ID_LENGTH = 128


class JtiRequirement(StrEnum):
    """How an assertion's ``jti`` is handled."""

    OFF = "off"
    WHEN_PRESENT = "when-present"
    REQUIRED = "required"


class JwtBearerGrant(GrantType):
    """Checks in this order: form and header, key, signature, then each claim.

    The header selects no algorithm: it must name the one to which the key was bound when it was added.

    After a valid signature the sender owns the key, and the description says what to fix.
    """

    grant_type = "urn:ietf:params:oauth:grant-type:jwt-bearer"
    parameters = frozenset({"assertion"})
    client_requirement = ClientRequirement.NONE

    def __init__(self, *, max_age: timedelta, max_lifetime: timedelta, jti: JtiRequirement) -> None:
        self._max_age = int(max_age.total_seconds())
        self._max_lifetime = int(max_lifetime.total_seconds())
        self._jti = jti

    def authorize(self, request: TokenRequest, context: Context) -> Authorization:
        """The service user who signed. Raises InvalidGrant, InvalidScope, InvalidRequest."""
        requested = request.parameters.get_space_delimited("scope")
        token = self._parse(request.parameters.require_value("assertion"), context)
        verifiers = context.protocol.assertion_verifiers.values()
        verifier = next((verifier for verifier in verifiers if verifier.accepts(token)), None)
        if verifier is not None:
            return self._authorize_outside_assertion(token, verifier, request, context)
        key, subject, claims = self._verify_assertion(token, context)
        try:
            self._check_claims(claims, subject, context)
        except InvalidGrant as refusal:
            context.services.service_users.record_refusal(subject, refusal.audit_reason)
            raise
        once = self._create_replay_credential(claims, subject, context)
        key_id = None if key is None else key.id
        authorization = _build_authorization(subject, requested, context, key_id=key_id, once=once)
        if key is not None:
            context.services.service_users.touch_key(key)
        return authorization

    def _parse(self, assertion: str, context: Context) -> UnverifiedToken:
        try:
            return UnverifiedToken.parse(assertion)
        except MalformedToken as refusal:
            context.services.service_users.record_refusal(None, str(refusal))
            raise InvalidGrant(INVALID_ASSERTION_MESSAGE, reason=str(refusal)) from None

    def _authorize_outside_assertion(
        self,
        token: UnverifiedToken,
        verifier: AssertionVerifier,
        request: TokenRequest,
        context: Context,
    ) -> Authorization:
        verified = verifier.verify(token, request, context)
        authorization, service_users = verified.authorization, context.services.service_users
        if authorization is None:
            raise ValueError("an assertion that is a grant allows something")
        use = service_users.new_assertion_record(verified.issuer, verified.single_use_id, verified.ends_at)
        once = AssertionCredential(use, partial(service_users.record_refusal, authorization.subject))
        if verified.credential is not None:
            context.services.federated_credentials.record_use(verified.credential)
        return replace(authorization, single_use_credential=once)

    def preview(self, preview_input: PreviewInput, context: Context) -> Authorization | None:
        """A service user with any key. Raises InvalidScope."""
        subject = preview_input.service_user
        return (
            None
            if subject is None
            else _build_authorization(subject, preview_input.requested_scopes, context, key_id=None)
        )

    def _verify_assertion(
        self, token: UnverifiedToken, context: Context
    ) -> tuple[ServiceUserKey | None, Subject, dict[str, Any]]:
        """The stored key, None for one that the service user publishes; the service user, and the claims."""
        try:
            algorithm, key_id, user_id = _read_identifiers(token)
            found = context.services.service_users.find_signing_key(key_id, user_id)
            published = None if found else _find_published_key(token, user_id, context)
            if published is not None:
                subject, jwk = published
                return None, subject, token.verify_with_jwk(jwk, algorithm=algorithm)
            if found is None or found[0].algorithm is not algorithm:
                # The work of a verification, so that an unknown key takes as long as a wrong signature.
                token.verify_with_unknown_key()
                raise AssertionRefused(
                    "no live key of this id and user" if found is None else "alg is not the algorithm of the key"
                )
            key, subject = found
            return key, subject, token.verify(_parsed(key.public_key, algorithm))
        except (MalformedToken, InvalidTokenSignature, AssertionRefused) as refusal:
            context.services.service_users.record_refusal(None, str(refusal))
            raise InvalidGrant(INVALID_ASSERTION_MESSAGE, reason=str(refusal)) from None

    def _check_claims(self, claims: dict[str, Any], subject: Subject, context: Context) -> None:
        """Check the claims of the key's owner. Raises InvalidGrant with what to fix."""
        now = int(context.now.timestamp())
        skew = int(context.settings.clock_skew.total_seconds())
        checked = AssertionClaims(claims, context, lambda description, reason: InvalidGrant(description, reason=reason))
        if claims.get("sub") != subject.user.id:
            raise InvalidGrant("sub must equal iss")
        checked.check_audience((context.issuer, *context.settings.assertion_audiences))
        issued_at = checked.read_timestamp("iat")
        # Reasons are constant, so that the audit trail can count repetitions.
        if issued_at < now - self._max_age:
            age = f"iat is {now - issued_at} s ago, at most {self._max_age} s are accepted"
            raise InvalidGrant(age, reason="iat is too old")
        if issued_at > now + skew:
            raise InvalidGrant(f"iat is {issued_at - now} s in the future", reason="iat is in the future")
        expires_at = checked.read_timestamp("exp")
        if expires_at <= now - skew:
            raise InvalidGrant(f"assertion expired {now - expires_at} s ago", reason="assertion expired")
        if expires_at <= issued_at:
            raise InvalidGrant("exp must be later than iat")
        if expires_at - issued_at > self._max_lifetime:
            raise InvalidGrant(f"exp must be at most {self._max_lifetime} s after iat")
        not_before = checked.read_timestamp("nbf") if "nbf" in claims else issued_at
        if not_before > now + skew:
            raise InvalidGrant(f"nbf is {not_before - now} s in the future", reason="nbf is in the future")
        if claims.get("jti") is None and self._jti is JtiRequirement.REQUIRED:
            raise InvalidGrant("jti is missing")
        checked.read_jti(is_required=False)

    def _create_replay_credential(
        self, claims: dict[str, Any], subject: Subject, context: Context
    ) -> "AssertionCredential | None":
        jti = claims.get("jti")
        if jti is None or self._jti is JtiRequirement.OFF:
            return None
        latest = max(claims["exp"], claims["iat"] + self._max_age)
        until = datetime.fromtimestamp(latest, UTC) + context.settings.clock_skew
        use = context.services.service_users.new_assertion_record(subject.user.id, jti, until)
        return AssertionCredential(use, partial(context.services.service_users.record_refusal, subject))


@dataclass(frozen=True, slots=True)
class AssertionCredential(SingleUseCredential):
    """A valid assertion, whose ``jti`` is recorded together with its token."""

    use: Record
    audit: Callable[[str], None]

    def consume(self, access: AccessToken | None, refresh: RefreshToken | None, context: Context) -> None:
        """Record both. Raises InvalidGrant the second time."""
        if access is None:
            raise ValueError("an assertion brings an access token")
        try:
            context.services.tokens.store_access_token(access, self.use)
        except AlreadyUsed:
            self.audit("jti was used before")
            raise InvalidGrant("jti was used before; each assertion needs a new one") from None


def _build_authorization(
    subject: Subject,
    requested: tuple[str, ...],
    context: Context,
    *,
    key_id: str | None = None,
    once: AssertionCredential | None = None,
) -> Authorization:
    requested = requested or (Scope.OPENID,)
    Scope.require_openid(requested)
    return Authorization(
        subject=subject,
        client=None,
        client_id=subject.user.id,
        requested_scopes=requested,
        authenticated_at=context.now,
        key_id=key_id,
        single_use_credential=once,
    )


class AssertionRefused(Exception):
    """Why an assertion is refused before its signature is verified; for the audit trail only."""


def _read_identifiers(token: UnverifiedToken) -> tuple[SignatureAlgorithm, str, str]:
    """The algorithm, key id and user id in the assertion, not yet verified."""
    algorithm = SignatureAlgorithm.from_name(token.header["alg"])
    if algorithm is None:
        raise AssertionRefused("alg is not one that a key can have")
    if token.header.get("typ") not in _TYPES:
        raise AssertionRefused("typ is not JWT")
    key_id, user_id = token.header.get("kid"), token.claims.get("iss")
    if not isinstance(key_id, str) or not 0 < len(key_id) <= _MAX_ID_LENGTH:
        raise AssertionRefused("kid is missing or too long")
    if not isinstance(user_id, str) or not 0 < len(user_id) <= _MAX_ID_LENGTH:
        raise AssertionRefused("iss is missing or too long")
    return algorithm, key_id, user_id


def _find_published_key(token: UnverifiedToken, user_id: str, context: Context) -> tuple[Subject, JwkPublicKey] | None:
    """The service user and the key in the key set that it publishes."""
    found = context.services.service_users.find_key_publisher(user_id)
    if found is None:
        return None
    subject, url = found
    try:
        key = context.services.assertions.find_key(
            token.header, jwks="", jwks_uri=url, organization_id=subject.organization.id
        )
    except InvalidKey as problem:
        raise AssertionRefused(str(problem)) from None
    return None if key is None else (subject, key)


#: A cache of keys by their bytes: parsing one takes a third of the time of a verification.
_parsed = lru_cache(256)(PublicKey.from_der)


class JwtBearerPlugin:
    """The JWT bearer grant (RFC 7523) for service users."""

    hookspecs = 1

    @dataclass(frozen=True)
    class Settings:
        """How strict assertions are judged."""

        max_assertion_age: timedelta = duration("The maximum age of an assertion, by its iat.", "1h")
        max_assertion_lifetime: timedelta = duration("The maximum time from iat to exp.", "24h")
        jti: JtiRequirement = setting(
            "Whether assertions with a jti are single-use: off, when-present or required.",
            default=JtiRequirement.WHEN_PRESENT,
        )

    def __init__(self, settings: Settings) -> None:
        self.settings = settings

    @hookimpl
    def identity_grant_types(self) -> Iterable[GrantType]:
        """The jwt-bearer grant."""
        settings = self.settings
        return [
            JwtBearerGrant(
                max_age=settings.max_assertion_age,
                max_lifetime=settings.max_assertion_lifetime,
                jti=settings.jti,
            )
        ]
