"""SecurityPolicy: picks the credential by route, and asks services.access for the verdict."""

from typing import NoReturn

from pyramid.config import Configurator
from pyramid.request import Request, RequestLocalCache
from pyramid.security import Allowed, Denied

from identity.domain.audit import Actor, ActorKind
from identity.http.routes import accepted_credential
from identity.provider.bearer import from_header
from identity.services.access import Principal

#: The permission of what every manager may: it asks for no more than a live credential and some manager role.
ANY_MANAGER = "any manager"

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
        if not principal.held:
            return Denied("This needs a manager role. Ask an owner of the organization for one.")
        if permission == ANY_MANAGER:
            return Allowed("any manager may")
        resource = getattr(context, "resource", None)
        if permission == NOBODY or resource is None:
            return Denied("Nobody may.")
        reason = request.services.access.refusal(principal, permission, resource)
        return Allowed("roles allow it") if reason is None else Denied(reason)

    def _find(self, request: Request) -> Principal | None:
        return _principal_of_bearer(request) if accepted_credential(request) == "bearer" else None

    def remember(self, request: Request, userid: str, **kw: object) -> NoReturn:
        """Refuse: a bearer token is not ours to remember."""
        raise TypeError("bearer tokens are neither remembered nor forgotten")

    def forget(self, request: Request, **kw: object) -> NoReturn:
        """Refuse: a bearer token is not ours to remember."""
        raise TypeError("bearer tokens are neither remembered nor forgotten")


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
    services.audit.actor = Actor(
        kind=ActorKind.USER,
        id=issued.subject.user.id,
        client_address=request.environ.get("REMOTE_ADDR"),
        request_id=request.request_id,
    )
    principal: Principal = services.access.principal(issued.subject)
    return principal


def includeme(config: Configurator) -> None:
    """Install the policy, and close every view that names no permission."""
    config.set_security_policy(SecurityPolicy())
    config.set_default_permission(NOBODY)
