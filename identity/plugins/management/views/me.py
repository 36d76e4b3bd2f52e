"""/me: who am I, which roles, which organization."""

from typing import Any

from pyramid.config import Configurator
from pyramid.request import Request

from identity.domain.users import ServiceUser
from identity.http.security import ANY_MANAGER


def show(request: Request) -> dict[str, Any]:
    """The caller, its organization, and the manager roles it holds right now."""
    principal = request.identity
    user, organization = principal.subject.user, principal.subject.organization
    return {
        "id": user.id,
        "kind": "service_user" if isinstance(user, ServiceUser) else "user",
        "user_name": user.user_name,
        "display_name": user.display_name,
        "login_name": principal.subject.login_name,
        "organization": {
            "id": organization.id,
            "name": organization.name,
            "primary_domain": organization.primary_domain,
        },
        "roles": [
            {"level": manager.resource.level, "resource_id": manager.resource.id, "roles": sorted(manager.roles)}
            for manager in principal.held
        ],
    }


def configure(config: Configurator, prefix: str) -> None:
    """GET /me."""
    config.add_route("management.me", f"{prefix}/me", host="base", authenticate="bearer", request_method="GET")
    config.add_view(show, route_name="management.me", permission=ANY_MANAGER, renderer="json")
