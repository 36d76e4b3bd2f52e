"""Scopes with which a program asks for a token that a project's applications take."""

from identity.domain import audiences
from identity.plugins.console.console_page import ConsolePage


def project_audience_scope(page: ConsolePage, project_id: str = "") -> str:
    """That of the project; without one, of the own project, which stands for the service itself and the management
    API. Empty before bootstrap."""
    instance = page.services.find_instance()
    project_id = project_id or ("" if instance is None else instance.project_id)
    namespace = page.request.registry.application.settings.urn_namespaces[0]
    return audiences.audience_scope(project_id, namespace) if project_id else ""
