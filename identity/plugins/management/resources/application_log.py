"""Application log: the latest requests of an application, and what was wrong with them."""

from identity.domain.application_requests import ApplicationRequest
from identity.plugins.management.api_resource import ApiResource
from identity.plugins.management.entity_paths import APPLICATION
from identity.plugins.management.representation import DateTime, Representation


class ApplicationRequestRepresentation(Representation):
    """A request of the application. `endpoint` is the endpoint's name, or `sign-in` for an attempt on a sign-in page.
    `error` is the OAuth error code, empty for a successful request, and `reason` says what was wrong. Values of
    parameters are never logged."""

    id: str
    at: DateTime
    endpoint: str
    grant_type: str
    error: str
    reason: str
    user_id: str | None
    client_network: str


OPERATIONS = (
    ApiResource[ApplicationRequest]("application_request", ApplicationRequestRepresentation).list(
        APPLICATION / "log",
        "Lists the latest requests of an application, newest first.",
        lambda call: call.services.figures.list_application_requests(call.entity.id),
        name="list_application_log",
        permission="application.read",
        is_paged=False,
        description="At most 25 successful and 25 refused requests of the last 30 days. Requests appear after up to ten"
        " seconds. Successful introspection and userinfo requests are not logged.",
    ),
)
