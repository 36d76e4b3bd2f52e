"""The instance: the installation itself, its own organization and project, and its addresses."""

from identity.domain.audiences import audience_scope
from identity.http import targets
from identity.http.security import ANY_MANAGER
from identity.plugins.management.operation import Call
from identity.plugins.management.representation import Representation
from identity.plugins.management.resource import Resource


class Instance(Representation):
    """What clients need to know of the instance: above all the own project's id, for the audience scope."""

    organization_id: str
    project_id: str
    audience_scope: str
    issuer_url: str
    base_url: str
    login_url: str


def _show(call: Call) -> Instance:
    settings, instance = call.settings, call.value
    return Instance(
        organization_id=instance.organization_id,
        project_id=instance.project_id,
        audience_scope=audience_scope(instance.project_id, settings.urn_namespaces[0]),
        issuer_url=settings.issuer_url,
        base_url=settings.base_url,
        login_url=settings.login_url,
    )


OPERATIONS = (
    Resource(kind="instance", answers=Instance, path="/instance", target=targets.instance).shows(
        "Tells the ids of the own organization and project, the audience scope, and the addresses.",
        _show,
        permission=ANY_MANAGER,
    ),
)
