"""Identity providers as described."""

from functools import partial

from identity.domain.organizations import Organization
from identity.domain.upstream_providers import UpstreamProvider
from identity.services.commands.descriptions import DescribedUpstreamProvider
from identity.services.commands.upstream_providers import ChangeUpstreamProvider, CreateUpstreamProvider
from identity.services.described.build import Action, Build, Kind, asked
from identity.services.described.present import Present
from identity.storage.paging import every_row


def ensure_upstream_providers(
    build: Build, path: str, organization: Organization, described: tuple[DescribedUpstreamProvider, ...] | None
) -> None:
    """The identity providers of an organization. A secret that is not described stays as it is."""
    if described is None:
        return
    build.require("upstream_provider.write", organization)
    providers = build.services.upstream_providers
    kind: Kind[UpstreamProvider] = Kind(providers, ChangeUpstreamProvider)
    rows = partial(every_row, partial(build.storage.upstream_providers.page, organization.id))
    present = Present[UpstreamProvider](kind.name, [] if build.fresh else rows())

    def name_of(one: UpstreamProvider | DescribedUpstreamProvider) -> str:
        return f"{organization.primary_domain} / {one.name}"

    for number, one in enumerate(described):
        place, make = f"{path}.upstream_providers[{number}]", partial(providers.create, organization.id, by=build.by)
        found = build.ensure(
            place,
            name_of(one),
            # What becomes different is told, and the secret is not.
            one.model_copy(update={"client_secret": None}),
            kind,
            find=partial(present.find, one),
            make=partial(make, asked(one, CreateUpstreamProvider), id=build.id_for(one)),
        )
        if found is not None and one.client_secret and not providers.has_secret(found, one.client_secret):
            with build.refusals_at(place):
                providers.change(found.id, ChangeUpstreamProvider(client_secret=one.client_secret), by=build.by)
                build.note(Action.CHANGE, kind.name, name_of(one), "client_secret")
    build.prune(
        f"{path}.upstream_providers",
        kind.name,
        rows,
        key=lambda one: (kind.name, one.id),
        name=name_of,
        remove=lambda one: providers.remove(one.id, by=build.by),
    )
