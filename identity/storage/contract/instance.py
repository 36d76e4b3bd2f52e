"""What is demanded of the instance store."""

from datetime import timedelta

import pytest

from identity.storage.contract.base import ContractBase, On
from identity.storage.contract.factories import an_instance
from identity.storage.errors import Duplicate


class InstanceContract(ContractBase):
    """There is at most one instance, and the first one stays."""

    def test_instance_find_before_bootstrap(self, on: On) -> None:
        assert on.read.organizations.find_instance() is None

    def test_instance_find_returns_what_was_added(self, on: On) -> None:
        instance = on.saved(an_instance(on.project))
        assert on.read.organizations.find_instance() == instance

    def test_instance_a_second_instance_is_refused(self, on: On) -> None:
        first = on.saved(an_instance(on.project))
        with pytest.raises(Duplicate) as refusal:
            on.write.organizations.add_instance(
                an_instance(on.project, created_at=first.created_at + timedelta(days=1))
            )
        assert refusal.value.field == "instance"
        assert on.read.organizations.find_instance() == first
