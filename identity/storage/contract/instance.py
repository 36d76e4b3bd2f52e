"""What is demanded of the instance store."""

from datetime import timedelta

import pytest

from identity.domain.projects import Project
from identity.storage.contract.base import ContractBase, InTransaction, Reading, Save
from identity.storage.contract.factories import an_instance
from identity.storage.errors import Duplicate


class InstanceContract(ContractBase):
    """There is at most one instance, and the first one stays."""

    def test_instance_find_before_bootstrap(self, reading: Reading) -> None:
        with reading() as storage:
            assert storage.instance.find() is None

    def test_instance_find_returns_what_was_added(self, save: Save, reading: Reading, project: Project) -> None:
        instance = an_instance(project)
        save(instance)
        with reading() as storage:
            assert storage.instance.find() == instance

    def test_instance_a_second_instance_is_refused(
        self, save: Save, in_transaction: InTransaction, reading: Reading, project: Project
    ) -> None:
        first = an_instance(project)
        save(first)
        with pytest.raises(Duplicate) as refusal, in_transaction() as storage:
            storage.instance.add(an_instance(project, created_at=first.created_at + timedelta(days=1)))
        assert refusal.value.field == "instance"
        with reading() as storage:
            assert storage.instance.find() == first
