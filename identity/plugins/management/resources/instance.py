"""The instance: the installation itself, the instance's organization and project, and the addresses."""

from identity.domain.audiences import AudienceScope
from identity.domain.instance import Instance
from identity.http.security_policy import ANY_MANAGER_PERMISSION
from identity.plugins.management.api_resource import ApiResource
from identity.plugins.management.entity_paths import INSTANCE
from identity.plugins.management.operation import OperationCall
from identity.plugins.management.representation import Representation


class InstanceRepresentation(Representation):
    """What clients need to know about the instance, above all the id of its own project, for the audience scope."""

    organization_id: str
    project_id: str
    audience_scope: str
    issuer_url: str
    base_url: str
    login_url: str


def _represent(call: OperationCall[Instance]) -> InstanceRepresentation:
    settings, instance = call.request.registry.application.settings, call.entity
    return InstanceRepresentation(
        organization_id=instance.organization_id,
        project_id=instance.project_id,
        audience_scope=AudienceScope.build(instance.project_id, settings.urn_namespaces[0]),
        issuer_url=settings.issuer_url,
        base_url=settings.base_url,
        login_url=settings.login_url,
    )


OPERATIONS = (
    ApiResource[Instance]("instance", InstanceRepresentation).get(
        INSTANCE / "instance",
        "Shows the ids of the instance's organization and project, the audience scope, and the addresses.",
        _represent,
        permission=ANY_MANAGER_PERMISSION,
    ),
)
