"""Overview: what expires soon, what was recently refused, and what a new organization still needs."""

from typing import Any

from identity.domain.instance import Instance
from identity.domain.organizations import Organization
from identity.domain.users import Subject
from identity.plugins.management.api_resource import ApiResource
from identity.plugins.management.entity_paths import INSTANCE, ORGANIZATION
from identity.plugins.management.operation import EmptyCommand, OperationCall
from identity.plugins.management.representation import DateTime, Representation
from identity.plugins.management.resources.audit_events import ActorRepresentation
from identity.services.commands import Command
from identity.services.overview import EndingKind, ExpiringCredentialKind


class ExpiringCredentialRepresentation(Representation):
    """A key or token that stops working within 30 days. `user_id` is whose it is, null for the service's own."""

    kind: ExpiringCredentialKind
    id: str
    user_id: str | None
    expires_at: DateTime


class EndingRoleRepresentation(Representation):
    """A user grant, project grant, manager role, group membership, or project roles or manager roles of a group, which
    end within 30 days. `organization_id` is set for a project grant, `group_id` for what is of a group, `user_id` for
    what one user has."""

    kind: EndingKind
    id: str
    user_id: str | None
    organization_id: str | None
    group_id: str | None
    ends_at: DateTime


class RefusalSummaryRepresentation(Representation):
    """Refused attempts of one actor at one object for one reason: how many, and when the last one was."""

    event: str
    actor: ActorRepresentation
    object_kind: str
    object_id: str | None
    reason: str | None
    at: DateTime
    count: int


class GettingStartedRepresentation(Representation):
    """Which steps to get started the organization has taken."""

    project: bool
    application: bool
    service_user: bool
    key: bool
    manager: bool


class CallerFirstStepsRepresentation(GettingStartedRepresentation):
    """The steps to get started that the organization has taken, and whether the caller has hidden them. Each manager
    decides for themselves."""

    hidden: bool


class OverviewRepresentation(Representation):
    """Soonest and newest first: at most 50 that expire and 20 of each kind that end within 30 days, and 20 that were
    refused within 24 hours. `ending` has only what the caller may read where it applies."""

    has_volatile_members = True

    expiring: list[ExpiringCredentialRepresentation]
    ending: list[EndingRoleRepresentation]
    refused: list[RefusalSummaryRepresentation]


class OrganizationOverviewRepresentation(OverviewRepresentation):
    """The overview of an organization, with its steps to get started."""

    first_steps: GettingStartedRepresentation


def _represent_expiring(
    call: OperationCall[Any], organization_id: str | None
) -> list[ExpiringCredentialRepresentation]:
    return [
        ExpiringCredentialRepresentation.from_value(
            expiring, id=expiring.credential.id, user_id=None if expiring.owner is None else expiring.owner.user.id
        )
        for expiring in call.services.overview.list_expiring(organization_id, principal=call.principal)
    ]


def _represent_ending(call: OperationCall[Any], organization_id: str | None) -> list[EndingRoleRepresentation]:
    return [
        EndingRoleRepresentation.from_value(
            ending,
            id=ending.entity.id,
            user_id=ending.holder.user.id if isinstance(ending.holder, Subject) else None,
            organization_id=ending.holder.id if isinstance(ending.holder, Organization) else None,
            group_id=getattr(ending.entity, "group_id", None),
        )
        for ending in call.services.overview.list_ending(organization_id, principal=call.principal)
    ]


def _represent_refused(call: OperationCall[Any], organization_id: str | None) -> list[RefusalSummaryRepresentation]:
    return [
        RefusalSummaryRepresentation.from_value(
            refused, actor=ActorRepresentation.from_value(refused.actor), at=refused.last_at
        )
        for refused in call.services.overview.list_refused(organization_id, principal=call.principal)
    ]


def _represent_organization(call: OperationCall[Organization]) -> OrganizationOverviewRepresentation:
    return OrganizationOverviewRepresentation(
        expiring=_represent_expiring(call, call.entity.id),
        ending=_represent_ending(call, call.entity.id),
        refused=_represent_refused(call, call.entity.id),
        first_steps=GettingStartedRepresentation.from_value(call.services.overview.getting_started(call.entity.id)),
    )


def _represent_instance(call: OperationCall[Instance]) -> OverviewRepresentation:
    return OverviewRepresentation(
        expiring=_represent_expiring(call, None),
        ending=_represent_ending(call, None),
        refused=_represent_refused(call, None),
    )


def _represent_steps(call: OperationCall[Organization]) -> CallerFirstStepsRepresentation:
    overview, organization_id = call.services.overview, call.entity.id
    return CallerFirstStepsRepresentation.from_value(
        overview.getting_started(organization_id),
        hidden=overview.are_steps_hidden(organization_id, principal=call.principal),
    )


def _hide_steps(call: OperationCall[Organization], _: Command) -> CallerFirstStepsRepresentation:
    call.services.overview.hide_steps(call.entity.id, principal=call.principal)
    return _represent_steps(call)


def _restore_steps(call: OperationCall[Organization], _: Command) -> CallerFirstStepsRepresentation:
    call.services.overview.show_steps(call.entity.id, principal=call.principal)
    return _represent_steps(call)


_STEPS = ApiResource[None]("first_steps", CallerFirstStepsRepresentation, permission_subject="organization")
_STEPS_PATH = ORGANIZATION / "first-steps"
_OVERVIEWS = ApiResource[None]("instance_overview", OverviewRepresentation, permission_subject="audit_event")

OPERATIONS = (
    _OVERVIEWS.get(
        ORGANIZATION / "overview",
        "Shows what needs attention in an organization.",
        _represent_organization,
        name="show_organization_overview",
        representation=OrganizationOverviewRepresentation,
    ),
    _OVERVIEWS.get(
        INSTANCE / "instance/overview", "Shows what needs attention in the whole instance.", _represent_instance
    ),
    _STEPS.get(_STEPS_PATH, "Shows the steps to get started with an organization.", _represent_steps),
    _STEPS.action(
        "hide_first_steps",
        _STEPS_PATH / "hide",
        "Hides the steps to get started on the overview in the console, for the caller alone.",
        EmptyCommand,
        _hide_steps,
        permission="organization.read",
    ),
    _STEPS.action(
        "restore_first_steps",
        _STEPS_PATH / "restore",
        "Shows the steps to get started again, which the caller has hidden.",
        EmptyCommand,
        _restore_steps,
        permission="organization.read",
    ),
)
