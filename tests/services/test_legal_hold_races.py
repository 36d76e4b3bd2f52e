"""Concurrent legal holds and removals."""

from concurrent.futures import ThreadPoolExecutor
from concurrent.futures import TimeoutError as StillWaits

import pytest

from identity.domain.errors import Invalid
from identity.domain.legal_holds import LegalHoldKind
from identity.services.access_control import Principal
from identity.services.commands.legal_holds import CreateLegalHold
from identity.testing.world import World


@pytest.mark.storages("postgresql")
def test_hold_on_user_under_removal_waits_and_is_refused(world: World) -> None:
    person = world.make_human_user()

    def create_hold() -> None:
        with world.transaction_services() as services:
            services.legal_holds.create(CreateLegalHold(kind=LegalHoldKind.USER, held_id=person.id, reason="Case 12"))

    with ThreadPoolExecutor(1) as pool:
        with world.transaction_services() as services:
            services.users.remove(person.id, principal=Principal.OPERATOR)
            placing = pool.submit(create_hold)
            with pytest.raises(StillWaits):
                placing.result(0.5)
        with pytest.raises(Invalid):
            placing.result(60)
