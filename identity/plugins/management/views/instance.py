"""/instance: the instance's own organization and project, and its addresses."""

from typing import Any

from pyramid.config import Configurator
from pyramid.request import Request

from identity.http.security import ANY_MANAGER


def show(request: Request) -> dict[str, Any]:
    """What clients need to know of the instance: above all the own project's id, for the audience scope."""
    settings = request.registry.identity.settings
    instance = request.services.instance()
    return {
        "organization_id": instance.organization_id,
        "project_id": instance.project_id,
        "audience_scope": f"{settings.urn_namespaces[0]}:org:project:id:{instance.project_id}:aud",
        "issuer_url": settings.issuer_url,
        "base_url": settings.base_url,
        "login_url": settings.login_url,
    }


def configure(config: Configurator, prefix: str) -> None:
    """GET /instance."""
    config.add_route(
        "management.instance", f"{prefix}/instance", host="base", authenticate="bearer", request_method="GET"
    )
    config.add_view(show, route_name="management.instance", permission=ANY_MANAGER, renderer="json")
