"""Legal holds: people and organizations that are not to go, with what tells of them."""

from identity.domain.legal_holds import Held, Hold
from identity.http import targets
from identity.plugins.management.operation import Call
from identity.plugins.management.representation import Moment, Representation
from identity.plugins.management.resource import Resource
from identity.services.commands.legal_holds import PlaceLegalHold


class LegalHold(Representation):
    """A hold: on a person or an organization (`held_id`), or with `instance` on everything there is; since when, and
    why. `organization_id` is that of the organization, or of the person's."""

    id: str
    kind: Held
    held_id: str | None
    organization_id: str | None
    since: Moment
    reason: str


def _shown(_call: Call, hold: Hold) -> LegalHold:
    return LegalHold.of(hold, held_id=None if hold.kind is Held.INSTANCE else hold.held)


_HOLDS = Resource(
    kind="legal_hold",
    answers=LegalHold,
    path="/instance/legal-holds/{legal_hold}",
    target=targets.instance,
    show=_shown,
)

OPERATIONS = (
    _HOLDS.lists(
        "Lists the legal holds, the oldest first.", lambda call: call.services.legal_holds.all().values(), paged=False
    ),
    _HOLDS.makes(
        "place",
        "Holds a person, an organization or everything: who is held is not deleted, and audit events, sessions and"
        " tokens of theirs are kept.",
        PlaceLegalHold,
        lambda call: call.services.legal_holds.place(call.command),
        description="The audit trail of the organization tells the reason.",
    ),
    _HOLDS.shows("Shows a legal hold.", lambda call: call.services.legal_holds.get(_HOLDS.part(call))),
    _HOLDS.removes(
        "Lifts a legal hold: what it held goes when the settings say so, and can be deleted.",
        lambda call: call.services.legal_holds.release(_HOLDS.part(call)),
        verb="lift",
        permission="legal_hold.write",
    ),
)
