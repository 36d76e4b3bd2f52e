"""Second factors: how a person proves who they are, besides the password."""

from identity.http import route_contexts
from identity.plugins.management.api_resource import ApiResource
from identity.plugins.management.representation import DateTime, Representation


class EnrolmentRepresentation(Representation):
    """A second factor that a person has set up: its `factor`, the name that they gave it, and since when. Its secret
    is never returned.
    """

    id: str
    factor: str
    name: str
    added_at: DateTime
    last_used_at: DateTime | None


_LIST = "/users/{user}/factors"


_FACTORS = ApiResource(
    kind="factor",
    representation=EnrolmentRepresentation,
    path=f"{_LIST}/{{factor}}",
    context_factory=route_contexts.user_context,
    permission_subject="user",
    service="users",
)

OPERATIONS = (
    _FACTORS.list_operation(
        "Lists what a person has set up to prove who they are by, newest first.",
        lambda call: call.services.factors.list_enrolments(call.entity.id),
        paged=False,
    ),
    _FACTORS.delete_operation(
        "Removes all of it, for whoever has lost it; the person is told by mail.",
        lambda call: call.services.users.reset_factors(call.entity.id, principal=call.principal),
        name="reset_factors",
        path=_LIST,
        permission="user.write",
    ),
)
