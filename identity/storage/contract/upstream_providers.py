"""Contract of the upstream provider store."""

from identity.storage.contract import factories as make
from identity.storage.contract.factories import DAY, NOW, make_id
from identity.storage.contract.harness import ContractBase, StorageHarness


class UpstreamProviderContract(ContractBase):
    """Available are the active providers of the organization and those for all."""

    def test_upstream_providers_are_offered_to_their_organization_and_those_for_all_to_everybody(
        self, on: StorageHarness
    ) -> None:
        provider = make.upstream_provider(on.organization, created_at=NOW + DAY)
        older = make.upstream_provider(on.organization)
        for_all = make.upstream_provider(on.other_organization, everywhere=True, created_at=NOW + 2 * DAY)
        foreign = make.upstream_provider(on.other_organization)
        resting = make.upstream_provider(on.organization, active=False)
        resting_for_all = make.upstream_provider(on.organization, active=False, everywhere=True)
        on.store(provider, older, for_all, foreign, resting, resting_for_all)
        offered = on.read.upstream_providers.list_available
        assert offered(on.organization.id) == (older, provider, for_all)
        assert offered(on.other_organization.id) == (foreign, for_all)
        assert offered(None) == offered(make_id()) == (for_all,)
