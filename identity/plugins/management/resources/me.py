"""Me: the caller, as the service sees it."""

from identity.domain.errors import Denied
from identity.domain.managers import Manager
from identity.domain.permissions import Level
from identity.domain.users import ServiceUser
from identity.http import targets
from identity.http.security import SIGNED_IN
from identity.plugins.management.operation import Call
from identity.plugins.management.representation import Representation, Words
from identity.plugins.management.resource import Resource


class OwnOrganization(Representation):
    """The organization that the caller belongs to."""

    id: str
    name: str
    primary_domain: str


class HeldRoles(Representation):
    """The manager roles that the caller holds at one resource."""

    level: Level
    resource_id: str
    roles: Words


class Me(Representation):
    """The caller, its organization, and the manager roles that it holds right now."""

    id: str
    kind: str
    user_name: str
    display_name: str
    login_name: str
    organization: OwnOrganization
    roles: tuple[HeldRoles, ...]


def _show(call: Call) -> Me:
    subject = call.by.subject
    if subject is None:
        raise Denied("Somebody has to ask.")
    return Me(
        id=subject.user.id,
        kind="service_user" if isinstance(subject.user, ServiceUser) else "user",
        user_name=subject.user.user_name,
        display_name=subject.user.display_name,
        login_name=subject.login_name,
        organization=OwnOrganization.of(subject.organization),
        roles=tuple(map(_held, call.by.held)),
    )


def _held(manager: Manager) -> HeldRoles:
    return HeldRoles.of(manager, level=manager.resource.level, resource_id=manager.resource.id)


OPERATIONS = (
    Resource(kind="me", answers=Me, path="/me", target=targets.caller).shows(
        "Tells who the caller is, which organization it belongs to and which manager roles it holds.",
        _show,
        permission=SIGNED_IN,
    ),
)
