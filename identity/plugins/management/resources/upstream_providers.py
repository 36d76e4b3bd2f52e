"""Identity providers at which people of an organization can sign in."""

from identity.domain import upstream_providers
from identity.plugins.management.api_resource import EntityApiResource
from identity.plugins.management.entity_paths import ORGANIZATION, UPSTREAM_PROVIDER
from identity.plugins.management.representation import Representation, representation_fields
from identity.services.commands.upstream_providers import ChangeUpstreamProvider, CreateUpstreamProvider


@representation_fields(upstream_providers.UpstreamProvider)
class UpstreamProviderRepresentation(Representation):
    """An identity provider. Its client secret is never returned; `secret_changed_at` is when it was last set."""


_PROVIDERS = EntityApiResource(
    "upstream_provider",
    UpstreamProviderRepresentation,
    at=UPSTREAM_PROVIDER,
    change_command=ChangeUpstreamProvider,
    service=lambda services: services.upstream_providers,
)

OPERATIONS = (
    _PROVIDERS.list(
        ORGANIZATION / "upstream-providers",
        "Lists the identity providers of an organization, newest first.",
        lambda call: call.services.storage.upstream_providers.page(call.entity.id, call.page),
    ),
    _PROVIDERS.create(
        "create_upstream_provider",
        ORGANIZATION / "upstream-providers",
        "Adds an identity provider.",
        CreateUpstreamProvider,
        lambda call, command: call.services.upstream_providers.create(
            call.entity.id, command, principal=call.principal
        ),
        location="/upstream-providers/{id}",
        description="For Apple the client secret is the private key issued by Apple, as PEM.",
    ),
    _PROVIDERS.show("Shows an identity provider."),
    _PROVIDERS.update("Changes an identity provider; the kind stays."),
    _PROVIDERS.deactivate("Deactivates an identity provider: people cannot sign in with it until it is reactivated."),
    _PROVIDERS.reactivate("Reactivates an identity provider."),
    _PROVIDERS.remove("Deletes an identity provider: people's accounts stay, their links to it are deleted."),
)
