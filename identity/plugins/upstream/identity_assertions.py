"""Identity assertions of a provider as grants: ID-JAG (draft-ietf-oauth-identity-assertion-authz-grant).

A token request of an application, which also authenticates::

    grant_type=urn%3Aietf%3Aparams%3Aoauth%3Agrant-type%3Ajwt-bearer&assertion=eyJ…

The assertion says that the provider wants the application to get a token for one of its people. The rules, in the order
in which they are checked:

- The application authenticates first. A public client cannot.
- A provider with the assertion's ``iss`` lists the application. Its keys come from its own discovery document. The
  service's own assertions are for other services. Up to the signature all failures have the same message.
- ``client_id`` is the application, ``aud`` this service alone, ``exp`` at most an hour away; ``iat``, ``jti`` and
  ``sub`` are required, and each assertion counts once.
- The person is linked to the provider by ``iss`` and ``sub``, never by an address. They and their organization are
  active, the policy allows identity providers, and the provider serves them: with a role at the instance only one that
  the instance manages. An application of the instance, too, takes assertions of such providers alone.
- The assertion's ``scope`` and ``resource`` are the most that the request gets, and the provider's list can limit the
  resources. Roles, rights to audiences and consent are judged as for every grant.
- The assertion's ``acr`` and ``amr`` meet a policy that requires a second factor only if the provider's methods are
  trusted; else the policy refuses.
- The token ends with the assertion, and when the identity is unlinked or the provider is deactivated, removed or stops
  listing the application. There is no refresh token. With ``cnf`` the request proves that key.
"""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, ClassVar

from identity.api.crypto import (
    InvalidKey,
    InvalidTokenSignature,
    MalformedToken,
    SignatureAlgorithm,
    UnverifiedToken,
)
from identity.api.endpoints import Context, InvalidGrant, InvalidScope, InvalidTarget, UnauthorizedClient
from identity.api.entities import ApplicationClient, HumanUser, Subject, UpstreamProvider
from identity.api.grants import (
    AssertionClaims,
    AssertionVerifier,
    Authorization,
    Scope,
    TokenRequest,
    VerifiedAssertion,
    requested_resources,
)
from identity.api.services import RecordNamespace
from identity.api.sign_in import Proof
from identity.plugins.upstream.linked_identities import LinkedIdentities
from identity.plugins.upstream.provider_clients import ExternalUser
from identity.plugins.upstream.provider_selection import SIGN_IN_METHOD

TYPE = "oauth-id-jag+jwt"
INVALID_ASSERTION_MESSAGE = "the assertion is not valid"
_MAX_LIFETIME = timedelta(hours=1)
_MAX_RESOURCES = 10
#: Delegation, and rich authorization requests: without them a token would allow more than was asserted.
_UNSUPPORTED = ("act", "authorization_details")


class IdentityAssertionRefused(Exception):
    """Why an assertion is refused up to its signature; for the audit trail only."""


class IdentityAssertionVerifier(AssertionVerifier):
    """Assertions about the people of identity providers."""

    name = "identity_assertions"
    discovery_members: ClassVar[Mapping[str, object]] = {
        "authorization_grant_profiles_supported": ["urn:ietf:params:oauth:grant-profile:id-jag"]
    }

    def __init__(self, name_space: RecordNamespace) -> None:
        self._name_space = name_space

    def accepts(self, token: UnverifiedToken) -> bool:
        """True for the type of these assertions."""
        return str(token.header.get("typ", "")).lower() == TYPE

    def verify(self, token: UnverifiedToken, request: TokenRequest, context: Context) -> VerifiedAssertion:
        client = request.authenticate_client()
        if client.application.is_public:
            raise UnauthorizedClient("a public client cannot prove that an assertion was meant for it")
        try:
            providers, claims = _verify_signature(token, client, context)
        except (MalformedToken, InvalidTokenSignature, InvalidKey, IdentityAssertionRefused) as refusal:
            _record_refusal(client, str(refusal), context)
            raise InvalidGrant(INVALID_ASSERTION_MESSAGE, reason=str(refusal)) from None
        try:
            return self._check_claims(claims, providers, request, client, context)
        except InvalidGrant as refusal:
            _record_refusal(client, refusal.audit_reason, context)
            raise

    def _check_claims(
        self,
        claims: dict[str, Any],
        providers: Sequence[UpstreamProvider],
        request: TokenRequest,
        client: ApplicationClient,
        context: Context,
    ) -> VerifiedAssertion:
        checked = AssertionClaims(claims, context, lambda description, reason: InvalidGrant(description, reason=reason))
        checked.check_audience({context.issuer})
        if claims.get("client_id") != client.id:
            checked.refuse("client_id must be the application that sends the assertion")
        for name in _UNSUPPORTED:
            if name in claims:
                checked.refuse(f"{name} is not supported in an assertion")
        used_until = checked.check_times(max_lifetime=_MAX_LIFETIME, requires_issued_at=True)
        jti = checked.read_jti()
        external_user = ExternalUser(
            issuer=providers[0].effective_issuer, subject=_read_subject(checked), claims=claims
        )
        provider, subject = self._find_person(external_user, providers, checked)
        if context.services.applications.is_instance_managed(client.application) and not provider.instance_managed:
            checked.refuse("the application belongs to the instance: only its own providers assert identities for it")
        authorization = Authorization(
            subject=subject,
            client=client,
            client_id=client.id,
            requested_scopes=_narrow_scopes(checked, request),
            authenticated_at=_authenticated_at(checked),
            methods=(provider.trust_methods and external_user.authentication_methods) or (Proof.FEDERATED_METHOD,),
            includes_id_token=False,
            resources=_narrow_resources(checked, provider, request),
            ends_at=datetime.fromtimestamp(checked.read_timestamp("exp"), UTC),
            confirmation=_read_confirmation(checked),
            provider_id=provider.id,
        )
        context.services.audit.record(
            "identity_assertion.accepted",
            kind="user",
            id=subject.user.id,
            organization_id=subject.organization.id,
            detail={
                "client_id": client.id,
                "provider_id": provider.id,
                "provider": provider.name,
                "resources": list(authorization.resources),
                "scope": list(authorization.requested_scopes),
            },
        )
        return VerifiedAssertion(
            authorization=authorization,
            credential=None,
            issuer=f"{TYPE} {provider.effective_issuer}",
            single_use_id=f"jti {jti}",
            ends_at=used_until,
        )

    def _find_person(
        self, external_user: ExternalUser, providers: Sequence[UpstreamProvider], checked: AssertionClaims
    ) -> tuple[UpstreamProvider, Subject]:
        """The one person linked to one of the providers who may sign in with it. Raises InvalidGrant, always with the
        same message."""
        services = checked.context.services
        links = LinkedIdentities(services.record_service(self._name_space), services.now)
        found = []
        for provider in providers:
            link = links.find_user_id(provider, external_user)
            subject = None if link is None else services.storage.users.find_subject(link.user_id)
            if (
                subject is not None
                and subject.is_active
                and isinstance(subject.user, HumanUser)
                and services.upstream_providers.serves_subject(provider, subject)
                and services.policies.allows_factor(subject, SIGN_IN_METHOD)
            ):
                found.append((provider, subject))
        if len(found) != 1:
            checked.refuse("sub names nobody who can use this application")
        return found[0]


def _verify_signature(
    token: UnverifiedToken, client: ApplicationClient, context: Context
) -> tuple[Sequence[UpstreamProvider], dict[str, Any]]:
    """The providers of this issuer that list the application, and the claims. Raises IdentityAssertionRefused and the
    errors of keys and signatures, always with the same work."""
    issuer, algorithm = token.claims.get("iss"), token.header["alg"]
    listing = context.services.upstream_providers.list_asserting(client.id)
    providers = [provider for provider in listing if provider.effective_issuer == issuer]
    reason, key = "no identity provider of this issuer lists the application", None
    if context.services.federated_credentials.is_own_issuer(str(issuer)):
        providers, reason = [], "the service's own issuer"
    if providers and algorithm not in SignatureAlgorithm.names():
        reason = "alg is not accepted"
    elif providers:
        reason = "no key of this kid and alg"
        organization_id = providers[0].organization_id
        key = context.services.assertions.find_discovered_key(token.header, str(issuer), organization_id)
    if key is None:
        token.verify_with_unknown_key()
        raise IdentityAssertionRefused(reason)
    claims = token.verify_with_jwk(key, algorithm=algorithm)
    # A provider must not outlive its deactivation by a slow answer with its keys.
    if any(context.services.upstream_providers.find(provider.id) != provider for provider in providers):
        raise IdentityAssertionRefused("the identity provider was changed during the request")
    return providers, claims


def _read_subject(checked: AssertionClaims) -> str:
    subject = checked.claims.get("sub")
    if not isinstance(subject, str) or not 0 < len(subject) <= 255 or not subject.isprintable():
        checked.refuse("sub must be a text of 1 to 255 characters")
    return subject


def _narrow_scopes(checked: AssertionClaims, request: TokenRequest) -> tuple[str, ...]:
    """The requested scopes, else those of the assertion, which are the most. Raises InvalidScope."""
    scope = checked.claims.get("scope", Scope.OPENID)
    if not isinstance(scope, str):
        checked.refuse("scope must be a text")
    asserted, requested = scope.split(), request.parameters.get_space_delimited("scope")
    if not set(requested) <= {*asserted, Scope.OPENID}:
        raise InvalidScope("scope must not be more than that of the assertion")
    scopes = tuple(dict.fromkeys(item for item in requested or asserted if item != Scope.OFFLINE_ACCESS))
    Scope.require_syntax(scopes)
    return scopes


def _narrow_resources(checked: AssertionClaims, provider: UpstreamProvider, request: TokenRequest) -> tuple[str, ...]:
    """The requested resources, else those of the assertion, which are the most. Raises InvalidTarget, also for one that
    the provider does not list for the application, and for none if it lists resources."""
    claim = checked.claims.get("resource", [])
    resources = [claim] if isinstance(claim, str) else claim
    if not isinstance(resources, list) or not all(isinstance(item, str) for item in resources):
        checked.refuse("resource must be a text, or a list of texts")
    requested = requested_resources(request.parameters, checked.context)
    if not set(requested) <= set(resources):
        raise InvalidTarget("resource must not be more than that of the assertion", reason="resource is not asserted")
    narrowed = tuple(dict.fromkeys(requested or resources))
    if len(narrowed) > _MAX_RESOURCES:
        checked.refuse(f"resource must have at most {_MAX_RESOURCES} members")
    listed = provider.assertion_resources(str(checked.claims["client_id"]))
    if listed is not None and not (narrowed and set(narrowed) <= listed):
        raise InvalidTarget("resource must be one that the identity provider lists", reason="resource is not listed")
    return narrowed


def _authenticated_at(checked: AssertionClaims) -> datetime:
    """When the person signed in at the provider, at the latest when it made the assertion."""
    names = [name for name in ("auth_time", "iat") if name in checked.claims]
    moment = min(checked.read_timestamp(name) for name in names)
    return min(datetime.fromtimestamp(moment, UTC), checked.context.now)


def _read_confirmation(checked: AssertionClaims) -> str | None:
    """The key that the request has to prove (RFC 7800 §3.1)."""
    claim = checked.claims.get("cnf")
    if claim is None:
        return None
    if not isinstance(claim, dict) or len(claim) != 1 or not all(isinstance(item, str) for item in claim.values()):
        checked.refuse("cnf must name one key by its thumbprint")
    [(method, thumbprint)] = claim.items()
    return f"{method}:{thumbprint}"


def _record_refusal(client: ApplicationClient, reason: str, context: Context) -> None:
    context.services.audit.record_refusal(
        "authentication.refused",
        kind="application",
        id=client.id,
        organization_id=client.organization.id,
        reason=reason,
    )
