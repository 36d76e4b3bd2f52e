"""Contract of the upstream provider store."""

from dataclasses import replace
from uuid import uuid4

from identity.storage.contract import factories as make
from identity.storage.contract.factories import DAY, NOW, make_id
from identity.storage.contract.harness import ContractBase, StorageHarness


def make_client_id() -> str:
    return uuid4().hex


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

    def test_upstream_providers_are_found_by_the_applications_that_they_list(self, on: StorageHarness) -> None:
        client_id, other_id = make_client_id(), make_client_id()
        newer = make.upstream_provider(
            on.organization, identity_assertion_clients=(f"{client_id} https://a.example",), created_at=NOW + DAY
        )
        lists = (other_id, client_id, f"{client_id} https://b.example")
        older = make.upstream_provider(on.other_organization, identity_assertion_clients=lists)
        resting = make.upstream_provider(on.organization, identity_assertion_clients=(client_id,), active=False)
        on.store(newer, older, resting, make.upstream_provider(on.organization))
        found = on.read.upstream_providers.list_asserting
        assert (found(client_id), found(other_id), found(make_client_id())) == ((older, newer), (older,), ())
        on.write.upstream_providers.update(replace(older, identity_assertion_clients=(other_id,), version=2))
        assert found(client_id) == (newer,)
        on.write.upstream_providers.delete(newer.id)
        assert found(client_id) == ()
