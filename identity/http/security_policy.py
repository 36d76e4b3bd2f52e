"""SecurityPolicy: picks the credential by route, and asks services.access for the verdict."""

from typing import NoReturn

from pyramid.config import Configurator
from pyramid.request import Request, RequestLocalCache
from pyramid.security import Allowed, Denied

from identity.domain.audit import ActorKind
from identity.domain.messages import gettext_lazy
from identity.domain.users import Subject
from identity.fair_semaphore import assign_organization
from identity.http.route_contexts import RouteContext
from identity.http.route_predicates import route_credential
from identity.provider.bearer_token import parse_bearer_header
from identity.services.access_control import Principal

#: The permission of what every manager may: it asks for no more than a live credential and some manager role.
ANY_MANAGER_PERMISSION = "any manager"

#: The permission of what everybody may for themselves: it asks for a live credential and no manager role.
SIGNED_IN_PERMISSION = "signed in"

#: The default permission: nobody holds it, so a view that forgets to name one is closed.
NEVER_PERMITTED = "nobody"


class SecurityPolicy:
    """Pyramid's seam for authentication and authorization."""

    def __init__(self) -> None:
        # Pyramid asks anew each time somebody says request.identity.
        self._identity_cache = RequestLocalCache(self._authenticate)

    def identity(self, request: Request) -> Principal | None:
        """Who asks, by the one kind of credential that the route accepts; None if it proves nobody."""
        principal: Principal | None = self._identity_cache.get_or_create(request)
        return principal

    def authenticated_userid(self, request: Request) -> str | None:
        """The user's id."""
        principal = request.identity
        return None if principal is None else principal.id

    def permits(self, request: Request, context: object, permission: str) -> Allowed | Denied:
        """Whether the principal may; the context is a resource, or None for the instance."""
        principal = request.identity
        if principal is None:
            return Denied("Authenticate first.")
        if permission == SIGNED_IN_PERMISSION:
            return Allowed("whoever is signed in may")
        if not principal.manager_entries:
            return Denied(gettext_lazy("This needs a manager role. Ask an owner of the organization for one."))
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

    def remember(self, request: Request, userid: str, **kw: object) -> NoReturn:
        """Refuse: sessions start and end with a sign-in (provider.endpoints.authorize), bearer tokens elsewhere."""
        raise TypeError("credentials are neither remembered nor forgotten here")

    def forget(self, request: Request, **kw: object) -> NoReturn:
        """Refuse: sessions start and end with a sign-in (provider.endpoints.authorize), bearer tokens elsewhere."""
        raise TypeError("credentials are neither remembered nor forgotten here")


def _authenticate_bearer_token(request: Request) -> Principal | None:
    """The user of a live access token that is meant for this service: its audience holds the own project."""
    token = parse_bearer_header(request.environ.get("HTTP_AUTHORIZATION"))
    if token is None:
        return None
    services = request.services
    issued = services.tokens.find_live_access_token(token)
    instance = services.find_instance()
    if issued is None or issued.subject is None or instance is None:
        return None
    if instance.project_id not in issued.token.audience:
        return None
    if services.policies.lacks_factor(issued.subject, issued.methods):
        # The rules have become stricter since it was issued.
        return None
    return _set_principal(request, issued.subject, client_id=issued.token.client_id, session_id=issued.token.session_id)


def _authenticate_session(request: Request) -> Principal | None:
    """The person who is signed in at this browser."""
    account = request.signed_in_account
    if account is None:
        return None
    if request.method not in ("GET", "HEAD"):
        request.services.sessions.touch(account)
    return _set_principal(request, account.subject, session_id=account.session.id)


def _set_principal(
    request: Request, subject: Subject, *, session_id: str | None, client_id: str | None = None
) -> Principal:
    """The subject as the one who acts in this request."""
    assign_organization(subject.organization.id)
    services = request.services
    actor = services.audit.actor
    services.audit.actor = actor.authenticated_as(
        ActorKind.USER, subject.user.id, client_id=client_id, session_id=session_id
    )
    principal: Principal = services.access_control.load_principal(subject)
    return principal


def includeme(config: Configurator) -> None:
    """Install the policy, and close every view that names no permission."""
    config.set_security_policy(SecurityPolicy())
    config.set_default_permission(NEVER_PERMITTED)
