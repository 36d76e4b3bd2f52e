"""Contract of races: one of many concurrent callers wins, over threads and processes."""

import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import partial
from typing import Any

import pytest

from identity.domain.applications import Application
from identity.domain.audit import AuditEvent
from identity.domain.authorization_codes import AuthorizationCode
from identity.domain.managers import Manager
from identity.domain.organizations import Organization
from identity.domain.permissions import INSTANCE_KEY
from identity.domain.records import Record
from identity.domain.service_user_secrets import ServiceUserSecret
from identity.domain.tokens import AccessToken, RefreshToken
from identity.domain.users import HumanUser
from identity.storage.backend import Storage
from identity.storage.contract import factories as make
from identity.storage.contract.factories import NOW, SECOND, make_digest, make_id
from identity.storage.contract.harness import ContractBase, StorageHarness
from identity.storage.contract.race_runner import RaceResult
from identity.storage.errors import AlreadyUsed, RowNotFound
from identity.storage.paging import PageRequest

#: Numbers of entities that concurrent callers compete for at the same time.
COUNTS = [1, 5]


class RaceContract(ContractBase):
    """Exactly one of several racing callers wins, over threads and processes, and the others get an error."""

    @pytest.mark.parametrize("count", COUNTS)
    def test_races_each_code_is_redeemed_once(self, on: StorageHarness, count: int) -> None:
        codes = [make.authorization_code(on.family) for _ in range(count)]
        brought = [make.refresh_token(on.family) for _ in range(120)]
        on.store(*codes)
        outcomes = on.race(partial(redeem_one_of, codes=codes, brought=brought), len(brought))
        assert one_winner_each(outcomes, count) == on.unchanged(*brought), "the winners' tokens alone are stored"
        for code in codes:
            with pytest.raises(AlreadyUsed):
                on.write.tokens.redeem_authorization_code(code.digest, client_id=code.client_id, redeemed_at=NOW)

    @pytest.mark.parametrize("count", COUNTS)
    def test_races_each_refresh_token_is_rotated_once(self, on: StorageHarness, count: int) -> None:
        tokens = [make.refresh_token(on.family) for _ in range(count)]
        successors = [make.refresh_token(on.family) for _ in range(120)]
        on.store(*tokens)
        outcomes = on.race(partial(rotate_one_of, tokens=tokens, successors=successors), len(successors))
        winners = one_winner_each(outcomes, count)
        assert winners == on.unchanged(*successors), "the winners' successors alone are stored"
        assert [token for token in successors if on.find_stored(token)] == winners

    @pytest.mark.parametrize("count", COUNTS)
    def test_races_each_record_that_a_token_uses_up_is_used_once(self, on: StorageHarness, count: int) -> None:
        used = [make.record() for _ in range(count)]
        tokens = [make.access_token(on.service_user, digest=make_digest()) for _ in range(120)]
        outcomes = on.race(partial(use_one_of, tokens=tokens, used=used), len(tokens))
        assert one_winner_each(outcomes, count) == on.unchanged(*tokens), "the winners' tokens alone are stored"

    def test_races_token_of_deleted_owner_fails_alone(self, on: StorageHarness) -> None:
        tokens = [make.access_token(on.service_user, digest=make_digest()) for _ in range(60)]
        tokens[7::10] = [make.access_token(None, user_id=make_id(), digest=make_digest()) for _ in tokens[7::10]]
        outcomes = on.race(partial(add_token_with_own_record, tokens=tokens, used=[make.record() for _ in tokens]), 60)
        assert outcomes.errors == {"RowNotFound": 6}
        assert on.unchanged(*tokens) == [access_token for number, access_token in enumerate(tokens) if number % 10 != 7]

    def test_races_a_signing_key_generation_is_added_once(self, on: StorageHarness) -> None:
        winner = on.race(add_signing_key, 50).single_winner(losers="DuplicateValue")
        assert [key.id for key in on.read.signing_keys.list_all()] == [winner.value]

    def test_races_the_instance_is_bootstrapped_once(self, on: StorageHarness) -> None:
        winner = on.race(add_instance, 50).single_winner(losers="DuplicateValue")
        instance = on.read.organizations.find_instance()
        organizations = on.read.organizations.page().items
        assert instance == winner.value
        assert [organization.id for organization in organizations] == [winner.value.organization_id], (
            "losers leave nothing behind"
        )

    def test_races_a_user_name_is_taken_once(self, on: StorageHarness) -> None:
        outcomes = on.race(partial(add_user, organization_id=on.organization.id), 50)
        outcomes.single_winner(losers="DuplicateValue")

    def test_races_a_version_is_updated_once(self, on: StorageHarness) -> None:
        winner = on.race(partial(rename, organization=on.organization), 50).single_winner(losers="StaleRow")
        assert on.read.organizations.find(on.organization.id) == winner.value, "no update is lost"

    def test_races_an_event_with_once_is_written_once(self, on: StorageHarness) -> None:
        outcomes = on.race(partial(append, once="key"), 50)
        assert outcomes.errors == {}
        assert outcomes.values.count(True) == 1
        assert len(on.read.audit.page()) == 1

    def test_races_events_get_sequence_numbers_of_their_own(self, on: StorageHarness) -> None:
        outcomes = on.race(append, 50)
        assert outcomes.errors == {}
        sequences = [event.sequence for event in on.read.audit.page().items]
        assert len(set(sequences)) == 50
        assert sequences == sorted(sequences, key=lambda number: number or 0, reverse=True)

    def test_races_a_follower_of_the_trail_misses_no_event(self, on: StorageHarness) -> None:
        followed: list[AuditEvent] = []
        with ThreadPoolExecutor(1) as pool:
            racing = pool.submit(on.race, append_twice, 120)
            while not racing.done():
                with on.read_session() as storage:
                    followed += storage.audit.list_after(followed[-1].sequence or 0 if followed else 0, 7)
        outcomes = racing.result()
        assert outcomes.errors == {}
        followed += on.read.audit.list_after(followed[-1].sequence or 0 if followed else 0, 1000)
        stored = on.read.audit.page(PageRequest(limit=1000)).items
        assert [event.id for event in followed] == [event.id for event in reversed(stored)]
        assert len(followed) == 240

    def test_races_last_uses_move_forward_alone(self, on: StorageHarness) -> None:
        secrets = [make.service_user_secret(on.service_user) for _ in range(8)]
        on.store(*secrets)
        ids = [secret.id for secret in secrets]
        outcomes = on.race(partial(touch, ids=ids), 60)
        assert outcomes.errors == {}, "nobody waits in a circle"
        stored = on.read.credentials.list_secrets(on.service_user.id)
        assert {secret.last_used_at for secret in stored} == {NOW + 59 * SECOND}

    def test_races_secrets_are_counted_by_one_at_a_time(self, on: StorageHarness) -> None:
        outcomes = on.race(
            partial(add_secret_unless_two, user_id=on.service_user.id, application_id=on.application.id), 24
        )
        assert outcomes.errors == {}
        assert sorted(outcomes.values, reverse=True)[:2] == [True, True]
        assert len(on.read.credentials.list_secrets(on.service_user.id)) == 2
        assert len(on.read.applications.list_secrets(on.application.id)) == 2

    def test_races_what_a_record_forbids_is_not_done(self, on: StorageHarness) -> None:
        for _ in range(4):
            record, other_record = make.record(), make.record()
            on.store(record, other_record)
            outcomes = on.race(partial(delete_or_change_record, record=record, deleted=other_record), 24)
            assert set(outcomes.errors) <= {"RowNotFound", "StaleRow"}, outcomes.errors
            stored = on.find_stored(record)
            assert stored is not None
            assert (on.find_stored(other_record) is None) == (stored.version == record.version), (
                "it is gone, or nobody may remove it"
            )

    def test_races_the_last_holder_of_a_role_stays(self, on: StorageHarness) -> None:
        users = [make.human_user(on.organization) for _ in range(12)]
        managers = [make.manager(user) for user in users]
        on.store(*users, *managers)
        outcomes = on.race(partial(delete_unless_last_manager, managers=managers), len(managers))
        assert outcomes.errors == {}
        left = on.read.managers.page(INSTANCE_KEY).items
        assert len(left) == 1, "two removals of the last two owners cannot both go through"
        assert outcomes.values.count(False) == 1

    def test_races_a_revoked_family_leaves_no_live_token(self, on: StorageHarness) -> None:
        for _ in range(4):
            family = make.token_family(on.human_user, on.application)
            first = make.refresh_token(family)
            on.store(family, first)
            outcomes = on.race(
                partial(rotate_or_revoke, user=on.human_user, application=on.application, first=first), 24
            )
            assert set(outcomes.errors) <= {"AlreadyUsed", "RowNotFound"}, outcomes.errors
            stored = on.find_stored(family)
            issued = [on.read.tokens.find_access_token(pair[1]) for pair in outcomes.values if pair]
            assert stored is not None
            assert stored.revoked_at == NOW
            assert all(token is not None and not token.is_live(NOW) for token in issued)
            for refresh in [pair[0] for pair in outcomes.values if pair]:
                with pytest.raises(RowNotFound):
                    on.write.tokens.rotate_refresh_token(refresh, make.refresh_token(family), NOW)


def one_of(number: int, count: int) -> int:
    """The entity that an attempt competes for: in each process, greenlets that are ready together try all."""
    return number // 6 % count


def one_winner_each(outcomes: RaceResult, count: int) -> list[Any]:
    """Results of the winners; fails unless each entity was won by one and all others came too late."""
    assert sorted(one_of(outcome.number, count) for outcome in outcomes.committed) == [*range(count)], outcomes.errors
    assert outcomes.errors == {"AlreadyUsed": len(outcomes.outcomes) - count}
    return [outcome.value for outcome in sorted(outcomes.committed, key=lambda attempt_outcome: attempt_outcome.number)]


# Race attempts run in other processes, too: they must be module-level functions.


def redeem_one_of(
    storage: Storage, number: int, *, codes: list[AuthorizationCode], brought: list[RefreshToken]
) -> RefreshToken:
    code = codes[one_of(number, len(codes))]
    storage.tokens.redeem_authorization_code(
        code.digest, client_id=code.client_id, redeemed_at=NOW, refresh=brought[number], is_last_write=True
    )
    return brought[number]


def rotate_one_of(
    storage: Storage, number: int, *, tokens: list[RefreshToken], successors: list[RefreshToken]
) -> RefreshToken:
    digest = tokens[one_of(number, len(tokens))].digest
    storage.tokens.rotate_refresh_token(digest, successors[number], NOW, is_last_write=True)
    return successors[number]


def use_one_of(storage: Storage, number: int, *, tokens: list[AccessToken], used: list[Record]) -> AccessToken:
    record = used[one_of(number, len(used))]
    storage.tokens.add_access_token(tokens[number], consumed_record=record, is_last_write=True)
    return tokens[number]


def add_token_with_own_record(storage: Storage, number: int, *, tokens: list[AccessToken], used: list[Record]) -> None:
    storage.tokens.add_access_token(tokens[number], consumed_record=used[number], is_last_write=True)


def add_signing_key(storage: Storage, number: int) -> str:
    key = make.signing_key(1)
    storage.signing_keys.add(key)
    return key.id


def add_instance(storage: Storage, number: int) -> Any:
    organization = make.organization()
    project = make.project(organization)
    instance = make.instance(project)
    storage.organizations.add(organization)
    storage.projects.add(project)
    storage.organizations.add_instance(instance)
    return instance


def add_user(storage: Storage, number: int, *, organization_id: str) -> None:
    """Take the same user name, in one of two spellings."""
    storage.users.add(make.human_user(organization_id=organization_id, user_name="ada" if number % 2 else "ADA"))


def rename(storage: Storage, number: int, *, organization: Organization) -> Organization:
    renamed = replace(organization, name=f"Acme {number}", version=organization.version + 1)
    storage.organizations.update(renamed)
    return renamed


def append_twice(storage: Storage, number: int) -> None:
    """Append two events, some time apart."""
    storage.audit.append(make.audit_event())
    # Meanwhile others get higher numbers and commit.
    time.sleep(number % 5 / 500)
    storage.audit.append(make.audit_event())


def touch(storage: Storage, number: int, *, ids: list[str]) -> None:
    """Record a use of all these secrets, in either order; higher attempts have later times."""
    ordered = ids if number % 2 else ids[::-1]
    storage.credentials.update_last_used(ServiceUserSecret, dict.fromkeys(ordered, NOW + number * SECOND))


def add_secret_unless_two(storage: Storage, number: int, *, user_id: str, application_id: str) -> bool:
    """Add a secret to either, or to none of them if it has two; True if one was added."""
    service_user_has_room = len(storage.credentials.list_secrets(user_id, locked=True)) < 2
    application_has_room = len(storage.applications.list_secrets(application_id, locked=True)) < 2
    if service_user_has_room:
        storage.credentials.add(make.service_user_secret(user_id=user_id))
    if application_has_room:
        storage.applications.add_secret(application_id, make.client_secret())
    return service_user_has_room or application_has_room


def append(storage: Storage, number: int, *, once: str | None = None) -> bool:
    return storage.audit.append(make.audit_event(once=once))


def delete_or_change_record(storage: Storage, number: int, *, record: Record, deleted: Record) -> None:
    """Delete the row unless the record was changed; every third time, change the record unless the row is gone. The
    change starts after others have read, and if possible ends before they act on what they read."""
    forbids = number % 3 == 2
    if forbids:
        time.sleep(0.002)
    found = storage.records.find(record.plugin, record.kind, record.key, locked=not forbids)
    assert found is not None
    if forbids:
        storage.records.replace(replace(found, version=found.version + 1))
        if storage.records.find(deleted.plugin, deleted.kind, deleted.key) is None:
            raise RowNotFound
    elif found.version == record.version:
        time.sleep(0.01)
        storage.records.delete(deleted.plugin, deleted.kind, deleted.key)


def delete_unless_last_manager(storage: Storage, number: int, *, managers: list[Manager]) -> bool:
    if len(storage.managers.lock_by_role(INSTANCE_KEY, "IAM_OWNER")) == 1:
        return False
    storage.managers.delete(managers[number].id)
    return True


def rotate_or_revoke(
    storage: Storage, number: int, *, user: HumanUser, application: Application, first: RefreshToken
) -> tuple[bytes, bytes] | None:
    """Rotate the family's token and issue an access token with it, or, every third time, revoke the family."""
    family = make.token_family(user, application, id=first.family_id)
    if number % 3 == 2:
        storage.tokens.revoke_family(family.id, NOW)
        return None
    successor, access = make.refresh_token(family), make.access_token(user, application, family, digest=make_digest())
    storage.tokens.rotate_refresh_token(first.digest, successor, NOW, access=access)
    return successor.digest, access.digest
