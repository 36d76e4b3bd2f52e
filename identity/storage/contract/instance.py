"""What is demanded of the instance store."""

from datetime import timedelta

import pytest

from identity.storage.contract.base import ContractBase, On
from identity.storage.contract.factories import an_instance
from identity.storage.errors import Duplicate


class InstanceContract(ContractBase):
    """There is at most one instance, and the first one stays."""

    def test_instance_find_before_bootstrap(self, on: On) -> None:
        with on.reading() as storage:
            assert storage.organizations.find_instance() is None

    def test_instance_find_returns_what_was_added(self, on: On) -> None:
        instance = an_instance(on.project)
        on.save(instance)
        with on.reading() as storage:
            assert storage.organizations.find_instance() == instance

    def test_instance_a_second_instance_is_refused(self, on: On) -> None:
        first = an_instance(on.project)
        on.save(first)
        with pytest.raises(Duplicate) as refusal, on.writing() as storage:
            storage.organizations.add_instance(an_instance(on.project, created_at=first.created_at + timedelta(days=1)))
        assert refusal.value.field == "instance"
        with on.reading() as storage:
            assert storage.organizations.find_instance() == first
