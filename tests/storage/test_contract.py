"""The contract itself: composed of parts, none of which hides a test or fixture of another."""

from collections import defaultdict

from identity.storage.contract import StorageContract
from identity.storage.contract.base import ContractBase


def test_no_part_hides_what_another_defines() -> None:
    owners = defaultdict(list)
    for part in StorageContract.__mro__:
        if issubclass(part, ContractBase):
            for name in vars(part):
                if not name.startswith("__"):
                    owners[name].append(part.__name__)
    assert {name: parts for name, parts in owners.items() if len(parts) > 1} == {}
