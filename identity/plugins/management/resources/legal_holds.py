"""Legal holds: people and organizations that must not be deleted, with the data about them."""

from identity.domain.legal_holds import LegalHold, LegalHoldKind
from identity.http import route_contexts
from identity.plugins.management.api_resource import ApiResource
from identity.plugins.management.operation import OperationCall
from identity.plugins.management.representation import DateTime, Representation
from identity.services.commands.legal_holds import CreateLegalHold


class LegalHoldRepresentation(Representation):
    """A hold on a person or an organization (`held_id`), or with `instance` on everything: since when, and why.
    `organization_id` is the held organization, or that of the person.
    """

    id: str
    kind: LegalHoldKind
    held_id: str | None
    organization_id: str | None
    since: DateTime
    reason: str


def _represent(_call: OperationCall, hold: LegalHold) -> LegalHoldRepresentation:
    return LegalHoldRepresentation.from_value(
        hold, held_id=None if hold.kind is LegalHoldKind.INSTANCE else hold.target_id
    )


_HOLDS = ApiResource(
    kind="legal_hold",
    representation=LegalHoldRepresentation,
    path="/instance/legal-holds/{legal_hold}",
    context_factory=route_contexts.instance_context,
    represent=_represent,
)

OPERATIONS = (
    _HOLDS.list_operation(
        "Lists the legal holds, the oldest first.",
        lambda call: call.services.legal_holds.list_holds().values(),
        paged=False,
    ),
    _HOLDS.create_operation(
        "place",
        "Holds a person, an organization or everything: who is held is not deleted, and audit events, sessions and"
        " tokens of theirs are kept.",
        CreateLegalHold,
        lambda call: call.services.legal_holds.create(call.command),
        description="The audit trail of the organization tells the reason.",
    ),
    _HOLDS.get_operation("Shows a legal hold.", lambda call: call.services.legal_holds.get(_HOLDS.child_id(call))),
    _HOLDS.delete_operation(
        "Lifts a legal hold: what it held goes when the settings say so, and can be deleted.",
        lambda call: call.services.legal_holds.release(_HOLDS.child_id(call)),
        verb="lift",
        permission="legal_hold.write",
    ),
)
