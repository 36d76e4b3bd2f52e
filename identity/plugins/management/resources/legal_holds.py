"""Legal holds: people and organizations that must not be deleted, with the data about them."""

from typing import Any

from identity.domain.legal_holds import LegalHold, LegalHoldKind
from identity.plugins.management.api_resource import ApiResource
from identity.plugins.management.entity_paths import INSTANCE
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


def _represent(_call: OperationCall[Any], hold: LegalHold) -> LegalHoldRepresentation:
    return LegalHoldRepresentation.from_value(
        hold, held_id=None if hold.kind is LegalHoldKind.INSTANCE else hold.target_id
    )


_HOLDS = ApiResource("legal_hold", LegalHoldRepresentation, _represent)
_LIST = INSTANCE / "instance/legal-holds"
_HOLD = _LIST / "{legal_hold}"

OPERATIONS = (
    _HOLDS.list(
        _LIST,
        "Lists the legal holds, oldest first.",
        lambda call: call.services.legal_holds.list_holds().values(),
        is_paged=False,
    ),
    _HOLDS.create(
        "place_legal_hold",
        _LIST,
        "Places a hold on a person, an organization or everything: nobody on hold can be "
        "deleted, and their audit events, sessions and tokens are kept.",
        CreateLegalHold,
        lambda call, command: call.services.legal_holds.create(command),
        description="The audit trail of the organization records the reason.",
    ),
    _HOLDS.get(_HOLD, "Shows a legal hold.", lambda call: call.services.legal_holds.get(call.child_id)),
    _HOLDS.delete(
        "lift_legal_hold",
        _HOLD,
        "Lifts a legal hold: the data can be deleted again, and is once its retention period ends.",
        lambda call: call.services.legal_holds.release(call.child_id),
        permission="legal_hold.write",
    ),
)
