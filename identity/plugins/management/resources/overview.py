"""Overview: what expires soon, what was refused lately, and what a new organization still lacks."""

from typing import Any

from identity.http import route_contexts
from identity.plugins.management.api_resource import ApiResource
from identity.plugins.management.operation import OperationCall
from identity.plugins.management.representation import DateTime, Representation
from identity.plugins.management.resources.audit_events import ActorRepresentation
from identity.services import overview
from identity.services.overview import ExpiringCredentialKind


class ExpiringCredentialRepresentation(Representation):
    """A key or token that stops working within 30 days. `user_id` is whose it is, null for the service's own."""

    kind: ExpiringCredentialKind
    id: str
    user_id: str | None
    expires_at: DateTime


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


class OverviewRepresentation(Representation):
    """Soonest and newest first: at most 50 that expire within 30 days, and 20 that were refused within 24 hours."""

    has_volatile_members = True

    expiring: list[ExpiringCredentialRepresentation]
    refused: list[RefusalSummaryRepresentation]


class OrganizationOverviewRepresentation(OverviewRepresentation):
    """The overview of an organization, with its steps to get started."""

    first_steps: GettingStartedRepresentation


def _read_overview(call: OperationCall, organization_id: str | None) -> dict[str, Any]:
    overview_service = call.services.overview
    return {
        "expiring": [
            _represent_credential(expiring_credential)
            for expiring_credential in overview_service.list_expiring(organization_id, principal=call.principal)
        ],
        "refused": [
            RefusalSummaryRepresentation.from_value(
                refusal_summary, actor=ActorRepresentation.from_value(refusal_summary.actor), at=refusal_summary.last_at
            )
            for refusal_summary in overview_service.list_refused(organization_id, principal=call.principal)
        ],
    }


def _represent_credential(expiring_credential: overview.ExpiringCredential) -> ExpiringCredentialRepresentation:
    return ExpiringCredentialRepresentation.from_value(
        expiring_credential,
        id=expiring_credential.credential.id,
        user_id=None if expiring_credential.owner is None else expiring_credential.owner.user.id,
    )


def _represent_organization(call: OperationCall) -> OrganizationOverviewRepresentation:
    steps = GettingStartedRepresentation.from_value(call.services.overview.getting_started(call.entity.id))
    return OrganizationOverviewRepresentation(**_read_overview(call, call.entity.id), first_steps=steps)


def _represent_instance(call: OperationCall) -> OverviewRepresentation:
    return OverviewRepresentation(**_read_overview(call, None))


_ORGANIZATION = ApiResource(
    kind="organization_overview",
    representation=OrganizationOverviewRepresentation,
    path="/organizations/{organization}/overview",
    context_factory=route_contexts.organization_context,
    permission_subject="audit_event",
)
_INSTANCE = ApiResource(
    kind="instance_overview",
    representation=OverviewRepresentation,
    path="/instance/overview",
    context_factory=route_contexts.instance_context,
    permission_subject="audit_event",
)

OPERATIONS = (
    _ORGANIZATION.get_operation("Shows what needs attention in an organization.", _represent_organization),
    _INSTANCE.get_operation("Shows what needs attention in the whole instance.", _represent_instance),
)
