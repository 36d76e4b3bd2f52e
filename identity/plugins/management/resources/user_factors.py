"""Second factors: how a person proves who they are, in addition to the password."""

from identity.domain.enrolments import Enrolment
from identity.plugins.management.api_resource import ApiResource
from identity.plugins.management.entity_paths import USER
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


_FACTORS = ApiResource[Enrolment]("factor", EnrolmentRepresentation, permission_subject="user")

OPERATIONS = (
    _FACTORS.list(
        USER / "factors",
        "Lists the second factors that a person has set up, newest first.",
        lambda call: call.services.factors.list_enrolments(call.entity.id),
        is_paged=False,
    ),
    _FACTORS.delete(
        "reset_factors",
        USER / "factors",
        "Removes all second factors, for a person who has lost them. The person is informed by mail.",
        lambda call: call.services.users.reset_factors(call.entity.id, principal=call.principal),
        permission="user.write",
    ),
)
