"""Contract of applications' logs."""

from datetime import datetime
from typing import Any

from identity.domain.application_requests import MAX_LOGGED_REQUESTS, ApplicationRequest
from identity.storage.contract import factories as make
from identity.storage.contract.factories import NOW, SECOND, make_id
from identity.storage.contract.harness import ContractBase, StorageHarness


def logged(application_id: str, at: datetime = NOW, **members: Any) -> ApplicationRequest:
    return ApplicationRequest(id=make_id(), application_id=application_id, at=at, endpoint="token", **members)


class ApplicationRequestContract(ContractBase):
    """The latest requests of an application stay, successful and refused ones by themselves."""

    def test_application_requests_come_back_latest_first(self, on: StorageHarness) -> None:
        first = logged(on.application.id, grant_type="some_grant", client_network="203.0.113.0/24")
        second = logged(
            on.application.id,
            NOW + SECOND,
            error="invalid_grant",
            reason="the code was used before",
            user_id=on.human_user.id,
        )
        on.write.application_requests.add([second, first])
        assert on.read.application_requests.list_for_application(on.application.id) == (second, first)
        assert on.read.application_requests.list_for_user(on.human_user.id) == (second,)
        assert on.read.application_requests.list_for_application(make_id()) == ()

    def test_application_requests_of_each_outcome_are_bounded(self, on: StorageHarness) -> None:
        refused = [
            logged(on.application.id, NOW + index * SECOND, error="invalid_client")
            for index in range(MAX_LOGGED_REQUESTS + 2)
        ]
        on.write.application_requests.add(refused[:3])
        on.write.application_requests.add(refused[3:])
        flood = [logged(on.application.id, NOW + index * SECOND) for index in range(100, 2 * MAX_LOGGED_REQUESTS + 100)]
        on.write.application_requests.add(flood)
        found = on.read.application_requests.list_for_application(on.application.id)
        assert found == (*reversed(flood[MAX_LOGGED_REQUESTS:]), *reversed(refused[2:]))

    def test_application_requests_of_others_stay(self, on: StorageHarness) -> None:
        application_id, other_id = on.application.id, on.store_value(make.application(on.project)).id
        foreign = [logged(other_id, NOW - SECOND) for _ in range(3)]
        on.write.application_requests.add(foreign)
        on.write.application_requests.add([logged(application_id) for _ in range(MAX_LOGGED_REQUESTS + 5)])
        assert set(on.read.application_requests.list_for_application(other_id)) == set(foreign)
        assert len(on.read.application_requests.list_for_application(application_id)) == MAX_LOGGED_REQUESTS

    def test_application_requests_leave_out_what_is_unknown(self, on: StorageHarness) -> None:
        first = logged(on.application.id, user_id=make_id())
        on.write.application_requests.add([logged(make_id()), first])
        (found,) = on.read.application_requests.list_for_application(on.application.id)
        assert (found.id, found.user_id) == (first.id, None)
        on.write.application_requests.add([])
        on.write.application_requests.add([logged(make_id())])

    def test_application_requests_go_with_application_and_user(self, on: StorageHarness) -> None:
        other_id = on.store_value(make.application(on.project)).id
        foreign, plain = logged(other_id, user_id=on.human_user.id), logged(other_id)
        on.write.application_requests.add([logged(on.application.id), foreign, plain])
        on.write.users.delete(on.human_user.id)
        assert on.read.application_requests.list_for_application(other_id) == (plain,)
        on.write.applications.delete(on.application.id)
        assert on.read.application_requests.list_for_application(on.application.id) == ()

    def test_application_requests_earlier_ones_are_deleted(self, on: StorageHarness) -> None:
        old, new = logged(on.application.id, NOW - SECOND), logged(on.application.id, NOW)
        on.write.application_requests.add([old, new])
        assert on.write.application_requests.delete_before(NOW) == 1
        assert on.read.application_requests.list_for_application(on.application.id) == (new,)
