"""Identity providers at which people of an organization can sign in."""

from identity.domain import upstream_providers
from identity.http import targets
from identity.plugins.management.representation import Representation, showing
from identity.plugins.management.resource import Resource
from identity.services.commands.upstream_providers import ChangeUpstreamProvider, CreateUpstreamProvider


@showing(upstream_providers.UpstreamProvider)
class UpstreamProvider(Representation):
    """An identity provider. Its client secret is shown to nobody; secret_changed_at says since when there is one."""


_PROVIDERS = Resource(
    kind="upstream_provider",
    answers=UpstreamProvider,
    path="/upstream-providers/{upstream_provider}",
    list_path="/organizations/{organization}/upstream-providers",
    target=targets.upstream_provider,
    owner=targets.organization,
)

OPERATIONS = (
    _PROVIDERS.lists(
        "Lists the identity providers of an organization, newest first.",
        lambda call: call.services.storage.upstream_providers.page(call.value.id, call.page),
    ),
    _PROVIDERS.makes(
        "create",
        "Adds an identity provider.",
        CreateUpstreamProvider,
        lambda call: call.services.upstream_providers.create(call.value.id, call.command, by=call.by),
        description="For Apple the client secret is the private key that Apple gave, in PEM form.",
    ),
    _PROVIDERS.shows("Shows an identity provider."),
    _PROVIDERS.changes("Changes an identity provider; the kind stays.", ChangeUpstreamProvider),
    _PROVIDERS.deactivates("Deactivates an identity provider: nobody signs in there until it is reactivated."),
    _PROVIDERS.reactivates("Reactivates an identity provider."),
    _PROVIDERS.removes("Deletes an identity provider: the accounts of people stay, their links to it are gone."),
)
