"""Me: the caller, as the service sees it."""

from identity.domain.errors import Denied
from identity.domain.permissions import ManagerLevel
from identity.domain.users import ServiceUser
from identity.http.security_policy import SIGNED_IN_PERMISSION
from identity.plugins.management.api_resource import ApiResource
from identity.plugins.management.entity_paths import CALLER
from identity.plugins.management.operation import OperationCall
from identity.plugins.management.representation import DateTime, Representation, SortedTexts


class CallerOrganizationRepresentation(Representation):
    """The organization that the caller belongs to."""

    id: str
    name: str
    primary_domain: str


class CallerManagerRolesRepresentation(Representation):
    """The manager roles that the caller holds at one resource, and when they end; null for no end."""

    level: ManagerLevel
    resource_id: str
    roles: SortedTexts
    until: DateTime | None


class CallerRepresentation(Representation):
    """The caller, its organization, and the manager roles that it holds right now."""

    id: str
    kind: str
    user_name: str
    display_name: str
    login_name: str
    organization: CallerOrganizationRepresentation
    roles: tuple[CallerManagerRolesRepresentation, ...]


def _represent(call: OperationCall[None]) -> CallerRepresentation:
    subject = call.principal.subject
    if subject is None:
        raise Denied("Somebody has to ask.")
    return CallerRepresentation(
        id=subject.user.id,
        kind="service_user" if isinstance(subject.user, ServiceUser) else "user",
        user_name=subject.user.user_name,
        display_name=subject.user.display_name,
        login_name=subject.login_name,
        organization=CallerOrganizationRepresentation.from_value(subject.organization),
        roles=tuple(
            CallerManagerRolesRepresentation.from_value(
                manager, level=manager.resource.level, resource_id=manager.resource.id
            )
            for manager in call.principal.manager_entries
        ),
    )


OPERATIONS = (
    ApiResource[None]("me", CallerRepresentation).get(
        CALLER,
        "Shows who the caller is, its organization and its manager roles.",
        _represent,
        permission=SIGNED_IN_PERMISSION,
    ),
)
