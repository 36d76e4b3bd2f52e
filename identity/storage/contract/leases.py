"""What is demanded of the lease store."""

from datetime import timedelta

from identity.storage.contract.base import ContractBase, On
from identity.storage.contract.factories import NOW

SECOND = timedelta(seconds=1)


class LeaseContract(ContractBase):
    """A lease is held by one until its time is over; then it is free to the second."""

    def test_leases_a_lease_is_taken_once_until_its_time_is_over(self, on: On) -> None:
        until = NOW + timedelta(minutes=1)
        with on.writing() as storage:
            assert storage.leases.acquire("purge", at=NOW, until=until)
        for at in (NOW, until - SECOND):
            with on.writing() as storage:
                assert not storage.leases.acquire("purge", at=at, until=at + timedelta(hours=1)), "another holds it"
        with on.writing() as storage:
            assert storage.leases.acquire("purge", at=until, until=until + SECOND)
        with on.writing() as storage:
            assert not storage.leases.acquire("purge", at=until, until=until + SECOND)
            assert storage.leases.acquire("purge", at=until + SECOND, until=until + 2 * SECOND)

    def test_leases_leases_of_other_names_are_free(self, on: On) -> None:
        with on.writing() as storage:
            assert storage.leases.acquire("purge", at=NOW, until=NOW + SECOND)
            assert storage.leases.acquire("rotation", at=NOW, until=NOW + SECOND)
