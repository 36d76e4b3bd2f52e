"""Overview: what expires soon, what was refused lately, and what a new organization still lacks."""

from typing import Any

from identity.http import targets
from identity.plugins.management.operation import Call
from identity.plugins.management.representation import Moment, Representation
from identity.plugins.management.resource import Resource
from identity.plugins.management.resources.audit_events import Actor
from identity.services import overview
from identity.services.overview import ExpiringKind


class Expiring(Representation):
    """A key or token that stops working within 30 days. `user_id` is whose it is, null for the service's own."""

    kind: ExpiringKind
    id: str
    user_id: str | None
    expires_at: Moment


class Refusal(Representation):
    """Attempts of one party at one thing, refused for one reason: how many, and when the last one was."""

    event: str
    actor: Actor
    object_kind: str
    object_id: str | None
    reason: str | None
    at: Moment
    count: int


class FirstSteps(Representation):
    """Which of the first things the organization has."""

    project: bool
    application: bool
    service_user: bool
    key: bool
    manager: bool


class Overview(Representation):
    """Soonest and newest first: at most 50 that expire within 30 days, and 20 that were refused within 24 hours."""

    moves = True

    expiring: list[Expiring]
    refused: list[Refusal]


class OrganizationOverview(Overview):
    """The same for an organization, with its first steps."""

    first_steps: FirstSteps


def _lists(call: Call, organization_id: str | None) -> dict[str, Any]:
    found = call.services.overview
    return {
        "expiring": [_expiring(one) for one in found.expiring(organization_id, by=call.by)],
        "refused": [Refusal.of(one, actor=Actor.of(one.actor)) for one in found.refused(organization_id, by=call.by)],
    }


def _expiring(one: overview.Expiring) -> Expiring:
    return Expiring.of(one, id=one.object.id, user_id=None if one.owner is None else one.owner.user.id)


def _of_organization(call: Call) -> OrganizationOverview:
    steps = FirstSteps.of(call.services.overview.first_steps(call.value.id))
    return OrganizationOverview(**_lists(call, call.value.id), first_steps=steps)


def _of_instance(call: Call) -> Overview:
    return Overview(**_lists(call, None))


_ORGANIZATION = Resource(
    kind="organization_overview",
    answers=OrganizationOverview,
    path="/organizations/{organization}/overview",
    target=targets.organization,
    of="audit_event",
)
_INSTANCE = Resource(
    kind="instance_overview",
    answers=Overview,
    path="/instance/overview",
    target=targets.instance,
    of="audit_event",
)

OPERATIONS = (
    _ORGANIZATION.shows("Shows what needs attention in an organization.", _of_organization),
    _INSTANCE.shows("Shows what needs attention in the whole instance.", _of_instance),
)
