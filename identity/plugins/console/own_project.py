"""The own project, which stands for the service itself in tokens."""

from identity.domain.audiences import audience_scope
from identity.plugins.console.console_page import ConsolePage


def own_audience_scope(page: ConsolePage) -> str:
    """The scope with which a program asks for a token that the management API takes; empty before bootstrap."""
    instance = page.services.instance()
    namespace = page.request.registry.identity.settings.urn_namespaces[0]
    return "" if instance is None else audience_scope(instance.project_id, namespace)
