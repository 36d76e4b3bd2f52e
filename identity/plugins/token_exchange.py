"""Grant token-exchange: an application exchanges a token of a user that it received for one of its own (RFC 8693).

A token request::

    POST /oauth/v2/token
    Authorization: Basic …
    Content-Type: application/x-www-form-urlencoded

    grant_type=urn%3Aietf%3Aparams%3Aoauth%3Agrant-type%3Atoken-exchange&subject_token=…
    &subject_token_type=urn%3Aietf%3Aparams%3Aoauth%3Atoken-type%3Aaccess_token&audience=…

Rights never grow. What comes out has at most the scope and the audience of what went in, ends no later, and is live
only while everything that went in is. The application must be in the audience of what went in, and the rules of every
other grant hold for it: its right to each audience, roles, consent, second factors. There is neither a refresh token
nor an ID token. What comes from a token that is bound to a key is bound too, to a key of the application. An actor
token adds a name to the claim ``act`` and no right; nothing removes a name. An agent acts for its owner alone, and
never at the management API.

With an ID token and the requested type ``id-jag`` the application gets an identity assertion for another authorization
server (draft-ietf-oauth-identity-assertion-authz-grant), which its settings list with the client id and the resources
there. Assertions are about people of the application's own organization alone, because a sign-in at an application of
another one allows it nothing elsewhere, and about people with a role at the instance only if the application belongs to
the instance. They end after five minutes, and with the ID token.

With the id of a person as the subject, the actor is a manager who wants to act as that person. That is impersonation:
the rules of ``ImpersonationService`` decide, and what comes out ends with that session.
"""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from datetime import timedelta
from typing import ClassVar

from identity.api.endpoints import (
    Context,
    InvalidRequest,
    InvalidScope,
    InvalidTarget,
    OAuthError,
    Parameters,
    UnauthorizedClient,
)
from identity.api.entities import ApplicationClient, DomainError, Subject
from identity.api.grants import (
    AccessToken,
    AudienceScope,
    Authorization,
    ClientRequirement,
    GrantType,
    OutgoingAssertion,
    PresentedAccessToken,
    PreviewInput,
    Scope,
    TokenRequest,
)
from identity.api.plugins import hookimpl

_PREFIX = "urn:ietf:params:oauth:token-type:"
ACCESS_TOKEN, ID_TOKEN, JWT, ID_JAG = (f"{_PREFIX}{kind}" for kind in ("access_token", "id_token", "jwt", "id-jag"))
_ASSERTION_TYPE = "oauth-id-jag+jwt"
_ASSERTION_LIFETIME = timedelta(minutes=5)
#: In any namespace of the service: the subject token is the id of a person.
USER_ID_SUFFIX = ":token-type:user_id"

#: One message for everything that is wrong with a token, which discloses nothing (RFC 8693 §2.2.2).
_INVALID = "{} is not a live token that this application may exchange"
_NOT_PERMITTED = "the manager of actor_token may not act as this person"


class TokenExchangeGrant(GrantType):
    """Tokens of this service only. The subject token of an application itself is refused: it is about no user."""

    grant_type = "urn:ietf:params:oauth:grant-type:token-exchange"
    parameters = frozenset(
        {
            *("subject_token", "subject_token_type", "actor_token", "actor_token_type"),
            *("requested_token_type", "audience", "resource", "reason"),
        }
    )
    repeatable_parameters = frozenset({"audience", "resource"})
    client_requirement = ClientRequirement.REQUIRED
    requires_confidential_client = True
    discovery_members: ClassVar[Mapping[str, object]] = {"identity_chaining_requested_token_types_supported": [ID_JAG]}

    def authorize(self, request: TokenRequest, context: Context) -> Authorization:
        """The user of the subject token, with what both that token and the client may have. Raises InvalidRequest,
        InvalidScope, UnauthorizedClient."""
        parameters, client = request.parameters, request.client
        if client is None:
            raise ValueError("the token endpoint authenticates the client first")
        if client.application.is_public:
            raise UnauthorizedClient("a public client cannot prove that a token was meant for it")
        if parameters.get_value("requested_token_type") == ID_JAG:
            return _assert_identity(parameters, client, context)
        issued_type = _issued_token_type(parameters, client)
        subject_token, kind = parameters.require_value("subject_token"), parameters.require_value("subject_token_type")
        actor = _find_actor(parameters, client, context)
        if kind in _user_id_types(context):
            authorization = _impersonate(subject_token, parameters, actor, client, context)
        elif kind == ID_TOKEN:
            requested = _requested_scopes(parameters, (Scope.OPENID,))
            authorization = _from_id_token(subject_token, requested, client, context)
        elif kind in (ACCESS_TOKEN, JWT):
            issued = _find_access_token("subject_token", subject_token, kind, client, context)
            if not context.services.tokens.is_in_audience(issued, client):
                raise _refuse("subject_token", "the client is not in the audience of the subject token")
            authorization = _from_access_token(issued, parameters, client)
        else:
            raise InvalidRequest(f"subject_token_type must be {ACCESS_TOKEN}, {JWT} or {ID_TOKEN}")
        if actor is not None and authorization.impersonator_id is None:
            authorization = _acting(authorization, actor, context)
        if len(authorization.ancestors) > AccessToken.MAX_ANCESTORS:
            raise InvalidRequest(f"a token can be exchanged from at most {AccessToken.MAX_ANCESTORS} others")
        targets, resources = parameters.get_values("audience"), parameters.get_values("resource")
        if context.protocol.resource_resolvers:
            authorization = replace(authorization, resources=parameters.get_space_delimited("resource"))
        else:
            targets = (*targets, *resources)
        return replace(authorization, requested_audience=targets, response_members={"issued_token_type": issued_type})

    def preview(self, preview_input: PreviewInput, context: Context) -> Authorization | None:
        """For an access token of the user with the requested scopes, and with every audience that they open; None
        unless the application is registered for it."""
        subject, client = preview_input.subject, preview_input.client
        if subject is None or client is None or self.grant_type not in client.application.grant_types:
            return None
        Scope.require_syntax(preview_input.requested_scopes)
        return Authorization(
            subject=subject,
            client=client,
            client_id=client.id,
            requested_scopes=_without_offline_access(preview_input.requested_scopes),
            authenticated_at=context.now,
            includes_id_token=False,
        )


def _from_access_token(
    issued: PresentedAccessToken, parameters: Parameters, client: ApplicationClient
) -> Authorization:
    """What the token lets the client have. Raises InvalidRequest, InvalidScope."""
    token = issued.token
    if issued.subject is None:
        raise _refuse("subject_token", "the subject token is about no user")
    return Authorization(
        subject=issued.subject,
        client=client,
        client_id=client.id,
        requested_scopes=_requested_scopes(parameters, token.scope),
        allowed_audience=token.audience,
        ancestors=token.lineage,
        authenticated_at=issued.authenticated_at or token.issued_at,
        methods=issued.methods,
        acr=issued.acr,
        session_id=token.session_id,
        family_id=token.family_id,
        includes_id_token=False,
        # Userinfo returns them for every token of the family, so the user must have agreed to them here, too.
        userinfo_claims=issued.claims,
        ends_at=token.expires_at,
        actors=token.actors,
        requires_confirmation=token.confirmation is not None,
    )


def _from_id_token(text: str, requested: tuple[str, ...], client: ApplicationClient, context: Context) -> Authorization:
    """An ID token says who signed in, not what they allowed: it stands for openid alone, at the client that it was
    issued to, while its session goes on. It opens no other project, and never the management API. Raises
    InvalidRequest."""
    hint = context.services.signing_keys.verify_id_token_hint(text)
    if hint is None or hint.client_id != client.id or context.now >= hint.expires_at:
        raise _refuse("subject_token", "not an unexpired ID token of this client")
    account = context.services.sessions.find_live(hint.session_id)
    if account is None or account.session.is_impersonated:
        raise _refuse("subject_token", "the session of the ID token has ended")
    if not context.services.subject_identifiers.is_known_as(hint.subject, account.subject.user.id, client=client):
        raise _refuse("subject_token", "the session of the ID token has ended")
    if not _is_connected(account.subject, client, context):
        raise _refuse("subject_token", "the tokens of the sign-in are revoked")
    is_own_project = context.services.projects.is_own_project(client.project.id)
    return Authorization(
        subject=account.subject,
        client=client,
        client_id=client.id,
        requested_scopes=requested,
        allowed_audience=(client.id,) if is_own_project else (client.id, client.project.id),
        authenticated_at=account.session.authenticated_at,
        methods=account.session.amr_methods,
        session_id=account.session.id,
        includes_id_token=False,
        ends_at=hint.expires_at,
    )


def _is_connected(subject: Subject, client: ApplicationClient, context: Context) -> bool:
    """False if all that the application got of the person is revoked: they disconnected it, or everything of it was
    ended. Sign-ins that bring an ID token alone leave nothing to revoke."""
    if client.application.response_types <= {"id_token"}:
        return True
    with context.services.read_session() as storage:
        connected = storage.tokens.list_connected_applications(subject.user.id, context.now)
    return any(item.client.id == client.id for item in connected)


def _assert_identity(parameters: Parameters, client: ApplicationClient, context: Context) -> Authorization:
    """An identity assertion about the person of the ID token. Raises InvalidRequest, InvalidScope, InvalidTarget,
    UnauthorizedClient."""
    if parameters.get_value("subject_token_type") != ID_TOKEN:
        raise InvalidRequest(f"subject_token_type must be {ID_TOKEN}")
    if parameters.get_value("actor_token") is not None:
        raise InvalidRequest("actor_token has no place in an identity assertion")
    audiences = parameters.get_values("audience")
    listed = client.application.find_assertion_audience(audiences[0]) if len(audiences) == 1 else None
    if listed is None:
        raise InvalidTarget("audience must be one authorization server that the application lists")
    client_id, allowed = listed
    # Without any the assertion would be for more than the application lists.
    resources = _requested_resources(parameters) or tuple(sorted(allowed))
    if not set(resources) <= allowed:
        raise InvalidTarget("resource must be one that the application lists for this audience")
    scope = parameters.get_space_delimited("scope")
    Scope.require_syntax(scope)
    authorization = _from_id_token(parameters.require_value("subject_token"), (Scope.OPENID,), client, context)
    subject, services = authorization.subject, context.services
    responsible = client.responsible_organization
    if subject is None or responsible is None or subject.organization.id != responsible.id:
        raise UnauthorizedClient("an application asserts identities of its own organization's people alone")
    if services.instance_managers.is_instance_manager(
        subject.user.id
    ) and not services.applications.is_instance_managed(client.application):
        raise UnauthorizedClient("the person has a role at the instance, to which the application does not belong")
    assertion = OutgoingAssertion(
        type=_ASSERTION_TYPE,
        audience=audiences[0],
        lifetime=_ASSERTION_LIFETIME,
        scope=scope,
        claims={
            "client_id": client_id,
            **({"resource": resources[0] if len(resources) == 1 else list(resources)} if resources else {}),
        },
    )
    services.audit.record(
        "identity_assertion.issued",
        kind="user",
        id=subject.user.id,
        organization_id=subject.organization.id,
        detail={"client_id": client.id, "audience": audiences[0], "resources": list(resources), "scope": list(scope)},
    )
    return replace(authorization, assertion=assertion, response_members={"issued_token_type": ID_JAG})


def _requested_resources(parameters: Parameters) -> tuple[str, ...]:
    """Those of other servers, whether or not the endpoint joined repeated ones."""
    return tuple(dict.fromkeys(item for value in parameters.get_values("resource") for item in value.split()))


def _impersonate(
    user_id: str,
    parameters: Parameters,
    actor: PresentedAccessToken | None,
    client: ApplicationClient,
    context: Context,
) -> Authorization:
    """The person, for a manager with an access token for the management API, which never comes out again. Raises
    InvalidRequest, InvalidScope."""
    if actor is None:
        raise InvalidRequest("parameter actor_token is missing")
    reason, services, token = parameters.require_value("reason"), context.services, actor.token
    instance = services.find_instance()
    own_project_id = "" if instance is None else instance.project_id
    namespaces = context.settings.urn_namespaces
    scope = tuple(
        item for item in token.scope if AudienceScope.find_project(item, namespaces, own_project_id) != own_project_id
    )
    requested = _requested_scopes(parameters, scope)
    try:
        account = services.impersonations.start_with_token(user_id, reason, issued=actor, client=client)
    except DomainError as problem:
        raise InvalidRequest(_NOT_PERMITTED, reason=f"{_NOT_PERMITTED}: {problem}") from None
    session = account.session
    return Authorization(
        subject=account.subject,
        client=client,
        client_id=client.id,
        requested_scopes=requested,
        allowed_audience=tuple(item for item in token.audience if item != own_project_id),
        ancestors=token.lineage,
        authenticated_at=session.authenticated_at,
        session_id=session.id,
        includes_id_token=False,
        ends_at=min(session.ends_at, token.expires_at),
        impersonator_id=session.impersonator_id,
        requires_confirmation=token.confirmation is not None,
    )


def _find_actor(parameters: Parameters, client: ApplicationClient, context: Context) -> PresentedAccessToken | None:
    """The actor's access token, issued to the client or for it. Raises InvalidRequest."""
    text, kind = parameters.get_value("actor_token"), parameters.get_value("actor_token_type")
    if text is None and kind is None:
        return None
    if text is None or kind is None:
        raise InvalidRequest("actor_token and actor_token_type go together")
    if kind not in (ACCESS_TOKEN, JWT):
        raise InvalidRequest(f"actor_token_type must be {ACCESS_TOKEN} or {JWT}")
    actor = _find_access_token("actor_token", text, kind, client, context)
    if actor.token.client_id != client.id and not context.services.tokens.is_in_audience(actor, client):
        raise _refuse("actor_token", "the client is not in the audience of the actor token")
    if actor.token.actors:
        raise _refuse("actor_token", "someone acts for the subject of the actor token")
    return actor


def _acting(authorization: Authorization, actor: PresentedAccessToken, context: Context) -> Authorization:
    """The authorization with the actor before earlier ones; it ends with the actor's token, and is bound if that is.
    Raises InvalidRequest for an agent and another person than its owner."""
    ends_at = actor.token.expires_at
    try:
        allowed = context.services.agent_rules.limit_actor(
            actor.subject, authorization.subject, authorization.allowed_audience
        )
    except DomainError as problem:
        raise _refuse("actor_token", str(problem)) from None
    return replace(
        authorization,
        allowed_audience=allowed,
        actors=(actor.token.subject, *authorization.actors),
        ancestors=tuple(dict.fromkeys((*authorization.ancestors, *actor.token.lineage))),
        ends_at=ends_at if authorization.ends_at is None else min(authorization.ends_at, ends_at),
        requires_confirmation=authorization.requires_confirmation or actor.token.confirmation is not None,
    )


def _find_access_token(
    name: str, text: str, kind: str, client: ApplicationClient, context: Context
) -> PresentedAccessToken:
    """As the client may see it, so that ``act`` names nobody by an identifier of another client. Raises
    InvalidRequest."""
    issued = context.services.tokens.find_live_access_token(text)
    if issued is None or (kind == JWT and issued.token.format.value != "jwt"):
        raise _refuse(name, f"{name} is not a live access token")
    if client.application.has_pairwise_subjects:
        issued = replace(issued, token=context.services.subject_identifiers.present(issued.token, client))
    return issued


def _refuse(name: str, reason: str) -> OAuthError:
    return InvalidRequest(_INVALID.format(name), reason=reason)


def _requested_scopes(parameters: Parameters, allowed: tuple[str, ...]) -> tuple[str, ...]:
    """A subset of the allowed scopes, or all of them; never offline_access. Raises InvalidScope."""
    requested = parameters.get_space_delimited("scope")
    if not set(requested) <= set(allowed):
        raise InvalidScope("scope must not be more than that of the exchanged token")
    return _without_offline_access(requested or allowed)


def _without_offline_access(scopes: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(item for item in scopes if item != Scope.OFFLINE_ACCESS)


def _issued_token_type(parameters: Parameters, client: ApplicationClient) -> str:
    """The requested type, if the application gets such tokens. Raises InvalidRequest."""
    requested = parameters.get("requested_token_type", ACCESS_TOKEN)
    if requested not in (ACCESS_TOKEN, JWT):
        raise InvalidRequest(f"requested_token_type must be {ACCESS_TOKEN} or {JWT}")
    if requested == JWT and client.application.access_token_type.value != "jwt":
        raise InvalidRequest("the access tokens of this application are opaque: its settings can make them JWTs")
    return requested


def _user_id_types(context: Context) -> frozenset[str]:
    return frozenset(f"{item}{USER_ID_SUFFIX}" for item in context.settings.urn_namespaces)


class TokenExchangePlugin:
    """The token exchange grant (RFC 8693): narrowing, delegation and impersonation."""

    hookspecs = 1

    @hookimpl
    def identity_grant_types(self) -> Iterable[GrantType]:
        """The token-exchange grant."""
        return [TokenExchangeGrant()]
