"""SecurityPolicy: picks the credential by route, and asks the access control service."""

from typing import NoReturn

from pyramid.config import Configurator
from pyramid.request import Request, RequestLocalCache
from pyramid.security import Allowed, Denied

from identity.domain.audit import ActorKind
from identity.domain.errors import Denied as DomainDenied
from identity.domain.messages import gettext_lazy
from identity.domain.tokens import PresentedAccessToken
from identity.domain.users import Subject
from identity.fair_semaphore import assign_organization
from identity.http.environ_keys import PEER_KEY, passed_headers
from identity.http.route_contexts import RouteContext
from identity.http.route_predicates import route_credential
from identity.provider.bearer_token import parse_token_header
from identity.provider.errors import OAuthError
from identity.provider.protocol_request import ProtocolRequest
from identity.provider.sender_constraint import check_sender, prove_sender
from identity.services.access_control import Principal

#: Permission that every manager has: it requires only a valid credential and any manager role.
ANY_MANAGER_PERMISSION = "any manager"

#: Permission that every user has for themselves: it requires only a valid credential.
SIGNED_IN_PERMISSION = "signed in"

#: Why a manager cannot do something while they are signed in as a person.
IMPERSONATION_DENIAL = gettext_lazy("While you are signed in as someone else, you can only look at their account.")


class ImpersonationDenied(DomainDenied):
    """Only the person themselves may do this."""


#: The default permission, which no role has: a view without a declared permission is closed.
NEVER_PERMITTED = "nobody"


class SecurityPolicy:
    """Pyramid's security policy."""

    def __init__(self) -> None:
        # Pyramid computes request.identity again at each access.
        self._identity_cache = RequestLocalCache(self._authenticate)

    def identity(self, request: Request) -> Principal | None:
        """The principal by the one kind of credential that the route accepts; None if it is invalid."""
        principal: Principal | None = self._identity_cache.get_or_create(request)
        return principal

    def assume_identity(self, request: Request, principal: Principal | None) -> None:
        """Let the request be one of this principal, whatever its credentials. For requests that the service makes for
        a caller whom it has authenticated.
        """
        self._identity_cache.set(request, principal)

    def authenticated_userid(self, request: Request) -> str | None:
        """The id of the principal's user, for Pyramid; None without one."""
        principal = request.identity
        return None if principal is None else principal.id

    def permits(self, request: Request, context: object, permission: str) -> Allowed | Denied:
        """Check the permission; the context is a resource, or None for the instance."""
        principal = request.identity
        if principal is None:
            return Denied("Authenticate first.")
        if permission == SIGNED_IN_PERMISSION:
            return Allowed("any signed-in user may")
        if principal.impersonator_id is not None:
            return Denied(IMPERSONATION_DENIAL)
        if not principal.manager_entries:
            return Denied(gettext_lazy("This requires a manager role. Ask an owner of the organization for one."))
        if permission == ANY_MANAGER_PERMISSION:
            return Allowed("any manager may")
        resource = getattr(context, "resource", None)
        if permission == NEVER_PERMITTED or resource is None:
            return Denied("Nobody may.")
        access = request.services.access_control
        judge = access.denial_reason_within if getattr(context, "includes_children", False) else access.denial_reason
        if isinstance(context, RouteContext):
            permission = context.effective_permission(permission)
        reason = judge(principal, permission, resource)
        return Allowed("roles allow it") if reason is None else Denied(reason)

    def _authenticate(self, request: Request) -> Principal | None:
        accepted = route_credential(request)
        if accepted == "bearer":
            return _authenticate_bearer_token(request)
        return _authenticate_session(request) if accepted == "session" else None

    def remember(self, request: Request, *_: object, **__: object) -> NoReturn:
        """Not supported: sessions start and end in provider.endpoints.authorize, bearer tokens elsewhere."""
        raise TypeError("credentials are neither remembered nor forgotten here")

    forget = remember


def _authenticate_bearer_token(request: Request) -> Principal | None:
    """The user of a live access token that is meant for this service: its audience contains the service's own
    project."""
    protocol = request.registry.application.protocol_registry
    presented = parse_token_header(request.environ.get("HTTP_AUTHORIZATION"), protocol.token_schemes)
    if presented is None:
        return None
    services = request.services
    try:
        issued = _find_access_token(request, *presented)
    except OAuthError as error:
        request.token_error = error
        return None
    instance = services.find_instance()
    if issued is None or issued.subject is None or instance is None:
        return None
    if instance.project_id not in issued.token.audience:
        return None
    if services.policies.lacks_factor(issued.subject, issued.methods):
        # The policy has become stricter since the token was issued.
        return None
    return _set_principal(request, issued.subject, client_id=issued.token.client_id, session_id=issued.token.session_id)


def _find_access_token(request: Request, scheme: str, text: str) -> PresentedAccessToken | None:
    """The live token, if its sender has its key. Raises OAuthError."""
    environ = request.environ
    protocol_request = ProtocolRequest(
        method=environ["REQUEST_METHOD"],
        query=b"",
        body=b"",
        content_type="",
        authorization=environ.get("HTTP_AUTHORIZATION"),
        path=environ.get("PATH_INFO", ""),
        headers=passed_headers(environ),
        is_from_proxy=request.registry.application.settings.is_trusted_proxy(environ.get(PEER_KEY, "")),
    )
    context = request.request_services.create_context()
    proved = prove_sender(protocol_request, scheme, text, context)
    issued: PresentedAccessToken | None = request.services.tokens.find_live_access_token(text)
    if issued is not None:
        check_sender(issued.token, proved, protocol_request, context)
    return issued


def _authenticate_session(request: Request) -> Principal | None:
    """The user of the browser's session."""
    account = request.signed_in_account
    if account is None:
        return None
    if request.method not in ("GET", "HEAD"):
        request.services.sessions.touch(account)
    if account.session.is_impersonated:
        assign_organization(account.subject.organization.id)
        request.services.audit.act_as_impersonator(account.session)
        # Pages about errors name the manager without reading.
        _ = request.impersonator
        return Principal(account.subject, impersonator_id=account.session.impersonator_id)
    return _set_principal(request, account.subject, session_id=account.session.id)


def _set_principal(
    request: Request, subject: Subject, *, session_id: str | None, client_id: str | None = None
) -> Principal:
    """Make the subject the actor of this request."""
    assign_organization(subject.organization.id)
    services = request.services
    actor = services.audit.actor
    services.audit.actor = actor.authenticated_as(
        ActorKind.USER, subject.user.id, client_id=client_id, session_id=session_id
    )
    principal: Principal = services.access_control.load_principal(subject)
    return principal


def includeme(config: Configurator) -> None:
    """Install the policy, and close every view that declares no permission."""
    config.set_security_policy(SecurityPolicy())
    config.set_default_permission(NEVER_PERMITTED)
