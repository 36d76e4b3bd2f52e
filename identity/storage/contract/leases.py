"""What is demanded of the lease store."""

from datetime import datetime, timedelta

from identity.storage.contract.base import ContractBase, InTransaction

SECOND = timedelta(seconds=1)


class LeaseContract(ContractBase):
    """A lease is held by one until its time is over; then it is free to the second."""

    def test_leases_a_lease_is_taken_once_until_its_time_is_over(
        self, in_transaction: InTransaction, now: datetime
    ) -> None:
        until = now + timedelta(minutes=1)
        with in_transaction() as storage:
            assert storage.leases.acquire("purge", at=now, until=until)
        for at in (now, until - SECOND):
            with in_transaction() as storage:
                assert not storage.leases.acquire("purge", at=at, until=at + timedelta(hours=1)), "another holds it"
        with in_transaction() as storage:
            assert storage.leases.acquire("purge", at=until, until=until + SECOND)
        with in_transaction() as storage:
            assert not storage.leases.acquire("purge", at=until, until=until + SECOND)
            assert storage.leases.acquire("purge", at=until + SECOND, until=until + 2 * SECOND)

    def test_leases_leases_of_other_names_are_free(self, in_transaction: InTransaction, now: datetime) -> None:
        with in_transaction() as storage:
            assert storage.leases.acquire("purge", at=now, until=now + SECOND)
            assert storage.leases.acquire("rotation", at=now, until=now + SECOND)
