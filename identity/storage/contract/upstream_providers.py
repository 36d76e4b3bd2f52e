"""What is demanded of the store of upstream providers."""

from identity.storage.contract.base import ContractBase, On
from identity.storage.contract.factories import DAY, NOW, an_id, an_upstream_provider


class UpstreamProviderContract(ContractBase):
    """Active ones are offered: those of the organization and those for all."""

    def test_upstream_providers_are_offered_to_their_organization_and_those_for_all_to_everybody(self, on: On) -> None:
        own = an_upstream_provider(on.organization, created_at=NOW + DAY)
        older = an_upstream_provider(on.organization)
        for_all = an_upstream_provider(on.other_organization, everywhere=True, created_at=NOW + 2 * DAY)
        foreign = an_upstream_provider(on.other_organization)
        resting = an_upstream_provider(on.organization, active=False)
        resting_for_all = an_upstream_provider(on.organization, active=False, everywhere=True)
        on.save(own, older, for_all, foreign, resting, resting_for_all)
        offered = on.read.upstream_providers.offered
        assert offered(on.organization.id) == (older, own, for_all)
        assert offered(on.other_organization.id) == (foreign, for_all)
        assert offered(None) == offered(an_id()) == (for_all,)
