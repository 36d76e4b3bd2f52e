"""SecurityPolicy: picks the credential by route, and asks services.access for the verdict."""

from typing import NoReturn

from pyramid.config import Configurator
from pyramid.request import Request, RequestLocalCache
from pyramid.security import Allowed, Denied

from identity.domain.audit import ActorKind
from identity.domain.users import Subject
from identity.domain.words import say
from identity.fair_shares import belongs_to
from identity.http.routes import accepted_credential
from identity.http.targets import Target
from identity.provider.bearer import from_header
from identity.services.access import Principal

#: The permission of what every manager may: it asks for no more than a live credential and some manager role.
ANY_MANAGER = "any manager"

#: The permission of what everybody may for themselves: it asks for a live credential and no manager role.
SIGNED_IN = "signed in"

#: The default permission: nobody holds it, so a view that forgets to name one is closed.
NOBODY = "nobody"


class SecurityPolicy:
    """Pyramid's seam for authentication and authorization."""

    def __init__(self) -> None:
        # Pyramid asks anew each time somebody says request.identity.
        self._known = RequestLocalCache(self._find)

    def identity(self, request: Request) -> Principal | None:
        """Who asks, by the one kind of credential that the route accepts; None if it proves nobody."""
        principal: Principal | None = self._known.get_or_create(request)
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
        if permission == SIGNED_IN:
            return Allowed("whoever is signed in may")
        if not principal.held:
            return Denied(say("This needs a manager role. Ask an owner of the organization for one."))
        if permission == ANY_MANAGER:
            return Allowed("any manager may")
        resource = getattr(context, "resource", None)
        if permission == NOBODY or resource is None:
            return Denied("Nobody may.")
        access = request.services.access
        judge = access.refusal_within if getattr(context, "parts", False) else access.refusal
        if isinstance(context, Target):
            permission = context.permission(permission)
        reason = judge(principal, permission, resource)
        return Allowed("roles allow it") if reason is None else Denied(reason)

    def _find(self, request: Request) -> Principal | None:
        accepted = accepted_credential(request)
        if accepted == "bearer":
            return _principal_of_bearer(request)
        return _principal_of_session(request) if accepted == "session" else None

    def remember(self, request: Request, userid: str, **kw: object) -> NoReturn:
        """Refuse: sessions start and end with a sign-in (provider.endpoints.authorize), bearer tokens elsewhere."""
        raise TypeError("credentials are neither remembered nor forgotten here")

    def forget(self, request: Request, **kw: object) -> NoReturn:
        """Refuse: sessions start and end with a sign-in (provider.endpoints.authorize), bearer tokens elsewhere."""
        raise TypeError("credentials are neither remembered nor forgotten here")


def _principal_of_bearer(request: Request) -> Principal | None:
    """The user of a live access token that is meant for this service: its audience holds the own project."""
    token = from_header(request.environ.get("HTTP_AUTHORIZATION"))
    if token is None:
        return None
    services = request.services
    issued = services.tokens.find_live(token)
    instance = services.instance()
    if issued is None or issued.subject is None or instance is None:
        return None
    if instance.project_id not in issued.token.audience:
        return None
    if services.policies.lacks_factor(issued.subject, issued.methods):
        # The rules have become stricter since it was issued.
        return None
    return _acting(request, issued.subject, client_id=issued.token.client_id, session_id=issued.token.session_id)


def _principal_of_session(request: Request) -> Principal | None:
    """The person who is signed in at this browser."""
    account = request.account
    if account is None:
        return None
    if request.method not in ("GET", "HEAD"):
        request.services.sessions.touch(account)
    return _acting(request, account.subject, session_id=account.session.id)


def _acting(request: Request, subject: Subject, *, session_id: str | None, client_id: str | None = None) -> Principal:
    """The subject as the one who acts in this request."""
    belongs_to(subject.organization.id)
    services = request.services
    actor = services.audit.actor
    services.audit.actor = actor.proven(ActorKind.USER, subject.user.id, client_id=client_id, session_id=session_id)
    principal: Principal = services.access.principal(subject)
    return principal


def includeme(config: Configurator) -> None:
    """Install the policy, and close every view that names no permission."""
    config.set_security_policy(SecurityPolicy())
    config.set_default_permission(NOBODY)
