"""Audience scopes, with which a program requests tokens for a project's applications."""

from identity.domain import audiences
from identity.plugins.console.console_page import ConsolePage


def project_audience_scope(page: ConsolePage, project_id: str = "") -> str:
    """The project's audience scope; without ``project_id`` that of the service's own project, for the management
    API. Empty before bootstrap.
    """
    instance = page.services.find_instance()
    project_id = project_id or ("" if instance is None else instance.project_id)
    namespace = page.request.registry.application.settings.urn_namespaces[0]
    return audiences.AudienceScope.build(project_id, namespace) if project_id else ""
