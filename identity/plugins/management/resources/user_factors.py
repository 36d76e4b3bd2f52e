"""Second factors: by what a person proves who they are, besides the password."""

from identity.http import targets
from identity.plugins.management.representation import Moment, Representation
from identity.plugins.management.resource import Resource


class Factor(Representation):
    """Something that a person has set up: of which `factor`, what they call it, and since when. What it is, nobody is
    shown."""

    id: str
    factor: str
    name: str
    added_at: Moment
    last_used_at: Moment | None


_LIST = "/users/{user}/factors"


_FACTORS = Resource(
    kind="factor",
    answers=Factor,
    path=f"{_LIST}/{{factor}}",
    target=targets.user,
    of="user",
    use_cases="users",
)

OPERATIONS = (
    _FACTORS.lists(
        "Lists what a person has set up to prove who they are by, newest first.",
        lambda call: call.services.factors.of(call.value.id),
        paged=False,
    ),
    _FACTORS.removes(
        "Removes all of it, for whoever has lost it; the person is told by mail.",
        lambda call: call.services.users.reset_factors(call.value.id, by=call.by),
        name="reset_factors",
        path=_LIST,
        permission="user.write",
    ),
)
