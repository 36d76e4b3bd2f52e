"""Identity providers at which people of an organization can sign in."""

from identity.domain import upstream_providers
from identity.http import route_contexts
from identity.plugins.management.api_resource import ApiResource
from identity.plugins.management.representation import Representation, representation_fields
from identity.services.commands.upstream_providers import ChangeUpstreamProvider, CreateUpstreamProvider


@representation_fields(upstream_providers.UpstreamProvider)
class UpstreamProviderRepresentation(Representation):
    """An identity provider. Its client secret is never returned; `secret_changed_at` is when it was last set."""


_PROVIDERS = ApiResource(
    kind="upstream_provider",
    representation=UpstreamProviderRepresentation,
    path="/upstream-providers/{upstream_provider}",
    list_path="/organizations/{organization}/upstream-providers",
    context_factory=route_contexts.upstream_provider_context,
    parent_context_factory=route_contexts.organization_context,
)

OPERATIONS = (
    _PROVIDERS.list_operation(
        "Lists the identity providers of an organization, newest first.",
        lambda call: call.services.storage.upstream_providers.page(call.entity.id, call.page),
    ),
    _PROVIDERS.create_operation(
        "create",
        "Adds an identity provider.",
        CreateUpstreamProvider,
        lambda call: call.services.upstream_providers.create(call.entity.id, call.command, principal=call.principal),
        description="For Apple the client secret is the private key that Apple gave, in PEM form.",
    ),
    _PROVIDERS.get_operation("Shows an identity provider."),
    _PROVIDERS.update_operation("Changes an identity provider; the kind stays.", ChangeUpstreamProvider),
    _PROVIDERS.deactivate_operation("Deactivates an identity provider: nobody signs in there until it is reactivated."),
    _PROVIDERS.reactivate_operation("Reactivates an identity provider."),
    _PROVIDERS.delete_operation(
        "Deletes an identity provider: the accounts of people stay, their links to it are gone."
    ),
)
