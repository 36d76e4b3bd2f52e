"""Services are constructed on first use, and open the storage on their first read or write."""

from typing import get_type_hints

import pytest

from identity.application import IdentityApplication
from identity.cached_property import cached_property
from identity.domain.audit import OPERATOR, Actor
from identity.services.container import Services
from identity.storage.backend import Storage


def test_constructing_any_service_opens_no_storage(identity: IdentityApplication) -> None:
    services = identity.create_services(lambda: pytest.fail("the storage was opened"), OPERATOR)
    names = [name for name, value in vars(Services).items() if isinstance(value, cached_property)]
    assert {"users", "tokens", "access_control"} <= {*names}
    for name in names:
        assert getattr(services, name) is getattr(services, name)
    assert not services.storage.opened


def test_storage_is_opened_once_and_has_every_store(identity: IdentityApplication) -> None:
    opened: list[Storage] = []
    with identity.backend.read_session() as storage:

        def open_storage() -> Storage:
            opened.append(storage)
            return storage

        services = identity.create_services(open_storage, OPERATOR)
        for name in get_type_hints(Storage):
            assert getattr(services.storage, name) is getattr(storage, name)
    assert opened == [storage]


def test_actor_is_resolved_once_on_first_use(identity: IdentityApplication) -> None:
    actors: list[Actor] = []

    def actor() -> Actor:
        actors.append(OPERATOR)
        return OPERATOR

    services = identity.create_services(lambda: pytest.fail("the storage was opened"), actor)
    assert services.audit.recorded_events == []
    assert actors == []
    assert services.audit.actor is services.audit.actor is OPERATOR
    assert actors == [OPERATOR]
