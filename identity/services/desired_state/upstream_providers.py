"""Identity providers in the desired state."""

from functools import partial

from identity.domain.organizations import Organization
from identity.domain.upstream_providers import UpstreamProvider
from identity.services.commands.desired_state import UpstreamProviderSpec
from identity.services.commands.upstream_providers import ChangeUpstreamProvider, CreateUpstreamProvider
from identity.services.desired_state.existing_rows import ExistingRows
from identity.services.desired_state.reconciler import ChangeAction, Reconciler, command_from_spec
from identity.storage.paging import iterate_rows

#: The path of a provider in the document, and what the document says about it.
DescribedProvider = tuple[str, UpstreamProviderSpec, UpstreamProvider]


def ensure_upstream_providers(
    build: Reconciler, path: str, organization: Organization, described: tuple[UpstreamProviderSpec, ...] | None
) -> list[DescribedProvider]:
    """The identity providers of an organization. A secret that is not described stays."""
    found: list[DescribedProvider] = []
    if described is None:
        return found
    build.require("upstream_provider.write", organization)
    providers = build.services.upstream_providers
    rows = partial(iterate_rows, partial(build.storage.upstream_providers.page, organization.id))
    present = ExistingRows[UpstreamProvider](providers.kind_label, [] if build.create_all else rows())

    def name_of(provider: UpstreamProvider | UpstreamProviderSpec) -> str:
        return f"{organization.primary_domain} / {provider.name}"

    for number, spec in enumerate(described):
        provider_path = f"{path}.upstream_providers[{number}]"
        create = partial(providers.create, organization.id, command_from_spec(spec, CreateUpstreamProvider))
        provider = build.ensure(
            provider_path,
            name_of(spec),
            # The change is reported without the secret.
            spec.model_copy(update={"client_secret": None}),
            providers,
            ChangeUpstreamProvider,
            find=partial(present.find, spec),
            create=partial(create, principal=build.principal, id=build.new_entity_id(spec)),
        )
        if provider is not None:
            found.append((provider_path, spec, provider))
        if provider is not None and spec.client_secret and not providers.has_secret(provider, spec.client_secret):
            with build.collect_problems(provider_path):
                command = ChangeUpstreamProvider(client_secret=spec.client_secret)
                providers.change(provider.id, command, principal=build.principal)
                build.record_change(ChangeAction.CHANGE, providers.kind_label, name_of(spec), "client_secret")
    build.prune_rows(
        f"{path}.upstream_providers",
        providers.kind_label,
        rows,
        key=lambda provider: (provider.id,),
        name=name_of,
        remove=lambda provider: providers.remove(provider.id, principal=build.principal),
    )
    return found
