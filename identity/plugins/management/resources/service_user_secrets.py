"""Secrets of service users: for programs that cannot sign."""

from identity.domain import service_user_secrets
from identity.http import targets
from identity.plugins.management.operation import Call
from identity.plugins.management.representation import Representation, showing
from identity.plugins.management.resource import Resource


@showing(service_user_secrets.ServiceUserSecret, without={"user_id"})
class ServiceUserSecret(Representation):
    """A live secret, without the secret itself."""


class NewServiceUserSecret(ServiceUserSecret):
    """A new secret, which is shown this once; the client id is the service user's id."""

    client_secret: str


def _add(call: Call) -> NewServiceUserSecret:
    added, text = call.services.service_users.add_secret(call.value.id, by=call.by)
    return NewServiceUserSecret.of(added, client_secret=text)


_SECRETS = Resource(
    kind="service_user_secret",
    answers=ServiceUserSecret,
    path="/service-users/{service_user}/secrets/{secret}",
    target=targets.service_user,
    of="service_user",
    use_cases="service_users",
    delete="write",
)

OPERATIONS = (
    _SECRETS.lists(
        "Lists the live secrets of a service user, oldest first, without the secrets themselves.",
        lambda call: call.services.service_users.secrets(call.value.id),
        paged=False,
    ),
    _SECRETS.makes(
        "add",
        "Adds a secret to a service user; the answer carries it, once.",
        None,
        _add,
        description="Two may be live, so that one can be replaced without a gap.",
        answers=NewServiceUserSecret,
    ),
    _SECRETS.shows(
        "Shows when a secret was made and last used.",
        lambda call: _SECRETS.pick(call, call.services.service_users.secrets(call.value.id)),
    ),
    _SECRETS.removes(
        "Ends a secret, and the tokens that it obtained, at once.",
        _SECRETS.of_part("remove_secret"),
        verb="remove",
    ),
)
