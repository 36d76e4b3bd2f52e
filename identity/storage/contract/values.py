"""Contract of all values, in whichever store."""

from collections.abc import Callable
from datetime import UTC, datetime
from functools import partial
from typing import Any

import pytest

from identity.domain.authorization_codes import AuthorizationCode
from identity.domain.domains import DomainProof, OrganizationDomain
from identity.domain.federated_credentials import FederatedCredential
from identity.domain.instance import Instance
from identity.domain.outbox import OutboxMessage
from identity.domain.permissions import ManagerLevel, ResourceKey
from identity.domain.personal_access_tokens import PersonalAccessToken
from identity.domain.projects import ProjectRole
from identity.domain.records import Record
from identity.domain.service_user_keys import ServiceUserKey
from identity.domain.service_user_secrets import ServiceUserSecret
from identity.domain.sessions import PendingAuthorization, Session
from identity.domain.signing_keys import SigningKey
from identity.domain.tokens import AccessToken, RefreshToken, TokenFamily
from identity.domain.users import PasswordHash, TokenFormat
from identity.domain.webhooks import WebhookDelivery
from identity.storage.contract import factories as make
from identity.storage.contract.factories import NOW, SECOND, make_id, other_values
from identity.storage.contract.harness import ContractBase, StorageHarness, add
from identity.storage.errors import DuplicateValue, RowNotFound
from identity.storage.stores.purges import LEGAL_HOLD_KINDS, PurgeKind

LAST_MOMENT = datetime(9999, 12, 31, 23, 59, 59, tzinfo=UTC)
SCOPE = ("openid", "z", "a")

#: One value of each kind with every field set; its parents are stored.
COMPLETE_VALUES: dict[str, Callable[[StorageHarness], Any]] = {
    "instance": lambda on: make.instance(on.project, **other_values(Instance)),
    "domain": lambda on: make.organization_domain(on.organization),
    "domain that counts": lambda on: make.organization_domain(**other_values(OrganizationDomain)),
    "role": lambda on: make.project_role(on.project, key="löwe", display_name="Löwe 株", **other_values(ProjectRole)),
    "password": lambda on: make.password_hash(on.human_user, **other_values(PasswordHash)),
    "key": lambda on: make.service_user_key(
        on.service_user, public_key=bytes(range(256)), **other_values(ServiceUserKey, expires_at=LAST_MOMENT)
    ),
    "secret": lambda on: make.service_user_secret(on.service_user, **other_values(ServiceUserSecret)),
    "federated credential": lambda on: make.federated_credential(
        on.service_user,
        name="Nächtliche 株",
        conditions=("sub = a", "repository_id = ü"),
        **other_values(FederatedCredential),
    ),
    "federated credential of an application": lambda on: make.federated_credential(on.application),
    "personal access token": lambda on: make.personal_access_token(
        on.service_user,
        name="Nächtliche 株",
        scope=SCOPE,
        **other_values(PersonalAccessToken, expires_at=LAST_MOMENT),
    ),
    "personal access token of no scope": lambda on: make.personal_access_token(on.service_user, scope=()),
    **{
        f"manager of {level}": lambda on, level=level: make.manager(  # type: ignore[misc]
            on.human_user,
            ResourceKey(level, make_id()),
            roles=frozenset({"A_ROLE", "B_ROLE"}),
            organization_id=None if level is ManagerLevel.INSTANCE else on.organization.id,
            version=2,
        )
        for level in ManagerLevel
    },
    "project grant of no role": lambda on: make.project_grant(on.project, on.other_organization, roles=frozenset()),
    "webhook delivery": lambda on: make.webhook_delivery(
        on.store_value(make.webhook(on.organization)), **other_values(WebhookDelivery, attempts=3)
    ),
    "session": lambda on: make.session(on.human_user, **other_values(Session)),
    "request": lambda on: make.pending_authorization(
        **other_values(PendingAuthorization, user_id=on.human_user.id, session_id="gone", version=7)
    ),
    "bare request": lambda on: make.pending_authorization(parameters={}),
    "family": lambda on: make.token_family(
        on.human_user, on.application, scope=SCOPE, **other_values(TokenFamily, session_id="session")
    ),
    "code": lambda on: make.authorization_code(
        on.family,
        redirect_uri="https://shop.example/rück?x=1",
        scope=(*SCOPE, "urn:service:iam:org:project:id:1:aud"),
        **other_values(AuthorizationCode, session_id="session"),
    ),
    "access token": lambda on: make.access_token(
        on.human_user,
        on.application,
        on.family,
        format=TokenFormat.JWT,
        scope=SCOPE,
        audience=("b", "a", "https://identity.example"),
        key_id=on.store_value(make.service_user_key(on.service_user)).id,
        secret_id=on.store_value(make.service_user_secret(on.service_user)).id,
        federated_credential_id=on.store_value(make.federated_credential(on.service_user)).id,
        client_secret_id=on.store_client_secret().id,
        **other_values(AccessToken, session_id="session"),
    ),
    "refresh token": lambda on: make.refresh_token(
        on.family, scope=SCOPE, **other_values(RefreshToken, session_id="session", predecessor_id=make_id())
    ),
    "signing key": lambda on: make.signing_key(
        2, algorithm="ES256", sealed_private_key=bytes(range(256)) * 8, **other_values(SigningKey)
    ),
    "message": lambda on: make.outbox_message(
        kind="logout", sealed=bytes(range(256)), **other_values(OutboxMessage, organization_id=make_id())
    ),
    "record": lambda on: make.record(
        on.human_user, on.application, plugin="größe", kind="a kind", **other_values(Record, version=9)
    ),
    "bare record": lambda on: make.record(expires_at=None),
}

#: Uniqueness rules: the field in the error, if it has a name, and two conflicting values, the first one stored.
DUPLICATE_VALUES: dict[str, tuple[str, Callable[[StorageHarness], Any], Callable[[StorageHarness, Any], Any]]] = {
    "instance": (
        "instance",
        lambda on: make.instance(on.project),
        lambda on, first: make.instance(on.project, created_at=NOW + SECOND),
    ),
    "primary domain": (
        "primary_domain",
        lambda on: on.organization,
        lambda on, first: make.organization(primary_domain=first.primary_domain),
    ),
    "domain that an organization waits for": (
        "domain",
        lambda on: make.organization_domain(on.organization),
        lambda on, first: make.organization_domain(on.organization, name=first.name),
    ),
    "domain that counts": (
        "domain",
        lambda on: make.organization_domain(on.other_organization, proof=DomainProof.DNS, verified_at=NOW),
        lambda on, first: make.organization_domain(name=first.name, proof=DomainProof.FILE, verified_at=NOW),
    ),
    "role": (
        "key",
        lambda on: make.project_role(on.project),
        lambda on, first: make.project_role(on.project, key=first.key, group="Other"),
    ),
    "project grant": (
        "organization_id",
        lambda on: make.project_grant(on.project, on.other_organization),
        lambda on, first: make.project_grant(on.project, on.other_organization),
    ),
    "user grant": (
        "user_id",
        lambda on: make.user_grant(on.human_user, on.project),
        lambda on, first: make.user_grant(on.human_user, on.project),
    ),
    "user grant by a project grant": (
        "user_id",
        lambda on: make.user_grant(
            on.human_user, on.project, on.store_value(make.project_grant(on.project, on.other_organization))
        ),
        lambda on, first: make.user_grant(on.human_user, on.project, project_grant_id=first.project_grant_id),
    ),
    "manager": (
        "user_id",
        lambda on: make.manager(on.human_user, ResourceKey(ManagerLevel.PROJECT, "p")),
        lambda on, first: make.manager(on.human_user, first.resource),
    ),
    "key": (
        "",
        lambda on: make.service_user_key(on.service_user),
        lambda on, first: make.service_user_key(on.human_user, id=first.id),
    ),
    "secret": (
        "",
        lambda on: make.service_user_secret(on.service_user),
        lambda on, first: make.service_user_secret(on.human_user, id=first.id),
    ),
    "personal access token": (
        "",
        lambda on: make.personal_access_token(on.service_user),
        lambda on, first: make.personal_access_token(on.human_user, id=first.id),
    ),
    "federated credential": (
        "",
        lambda on: make.federated_credential(on.service_user),
        lambda on, first: make.federated_credential(on.human_user, id=first.id),
    ),
    "session": ("id", lambda on: on.session, lambda on, first: make.session(on.human_user, id=first.id)),
    "digest of a session": (
        "digest",
        lambda on: on.session,
        lambda on, first: make.session(on.human_user, digest=first.digest),
    ),
    "request": (
        "id",
        lambda on: make.pending_authorization(),
        lambda on, first: make.pending_authorization(id=first.id),
    ),
    "code": (
        "",
        lambda on: make.authorization_code(on.family),
        lambda on, first: make.authorization_code(on.family, digest=first.digest, nonce="other"),
    ),
    "refresh token": (
        "",
        lambda on: make.refresh_token(on.family),
        lambda on, first: make.refresh_token(on.family, digest=first.digest, nonce="other"),
    ),
    "signing key": ("", lambda on: make.signing_key(1), lambda on, first: make.signing_key(2, id=first.id)),
    "generation": ("generation", lambda on: make.signing_key(1), lambda on, first: make.signing_key(1)),
    "message": (
        "id",
        lambda on: make.outbox_message(),
        lambda on, first: make.outbox_message(id=first.id, sealed=b"other"),
    ),
}

#: Values whose parents do not exist.
ORPHANS: tuple[Callable[[StorageHarness], Any], ...] = (
    lambda on: make.project_role(),
    lambda on: make.password_hash(),
    lambda on: make.service_user_key(),
    lambda on: make.service_user_secret(),
    lambda on: make.personal_access_token(),
    lambda on: make.federated_credential(),
    lambda on: make.federated_credential(make.application(on.project)),
    lambda on: make.session(),
    lambda on: make.pending_authorization(user_id=make_id()),
    lambda on: make.token_family(None, on.application),
    lambda on: make.token_family(on.human_user, None),
    lambda on: make.authorization_code(make.token_family(on.human_user, on.application)),
    lambda on: make.refresh_token(make.token_family(on.human_user, on.application)),
)

#: How to make a row that is expired at a moment.
PURGE_CASES: dict[PurgeKind, Callable[[StorageHarness, datetime], Any]] = {
    PurgeKind.FAMILIES: lambda on, at: make.token_family(on.human_user, on.application, ends_at=at),
    PurgeKind.ACCESS_TOKENS: lambda on, at: make.access_token(on.service_user, expires_at=at),
    PurgeKind.CODES: lambda on, at: make.authorization_code(on.family, expires_at=at),
    PurgeKind.REQUESTS: lambda on, at: make.pending_authorization(expires_at=at),
    PurgeKind.SESSIONS: lambda on, at: make.session(on.human_user, ends_at=at),
    PurgeKind.MESSAGES: lambda on, at: make.outbox_message(kind=make_id(), created_at=at - SECOND, expires_at=at),
    PurgeKind.WEBHOOK_DELIVERIES: lambda on, at: make.webhook_delivery(
        on.store_value(make.webhook(on.organization)), expires_at=at
    ),
    PurgeKind.RECORDS: lambda on, at: make.record(plugin=make_id(), expires_at=at),
}
#: Rows that were used, but are not expired.
SERVED_ROWS: tuple[Callable[[StorageHarness], Any], ...] = (
    lambda on: make.authorization_code(on.family, expires_at=NOW - SECOND, redeemed_at=NOW - SECOND),
    lambda on: make.pending_authorization(finished_at=NOW - SECOND),
    lambda on: make.session(on.human_user, ended_at=NOW - SECOND),
    lambda on: make.record(taken_at=NOW - SECOND),
    lambda on: make.record(expires_at=None),
)


class ValueContract(ContractBase):
    """A value is read as it was stored, refused if another has its key, and purged when it expires."""

    @pytest.mark.parametrize("kind", COMPLETE_VALUES)
    def test_values_come_back_as_they_were_added(self, on: StorageHarness, kind: str) -> None:
        value = COMPLETE_VALUES[kind](on)
        assert on.find_stored(value) is None
        assert on.find_stored(on.store_value(value)) == value

    @pytest.mark.parametrize("name", DUPLICATE_VALUES)
    def test_values_that_are_unique_are_refused_a_second_time_and_the_transaction_goes_on(
        self, on: StorageHarness, name: str
    ) -> None:
        field, make_first, make_second = DUPLICATE_VALUES[name]
        first, user = make_first(on), make.human_user(on.organization)
        if on.find_stored(first) is None:
            on.store(first)
        second = make_second(on, first)
        with on.transaction() as storage:
            with pytest.raises(DuplicateValue) as refusal:
                add(storage, second)
            add(storage, user)
        assert refusal.value.field == field or not field
        assert on.unchanged(first, user) == [first, user]
        assert on.unchanged(second) == []

    def test_values_need_what_they_belong_to_and_the_transaction_goes_on(self, on: StorageHarness) -> None:
        orphans = [orphan(on) for orphan in ORPHANS]
        with on.transaction() as storage:
            for orphan in orphans:
                with pytest.raises(RowNotFound):
                    add(storage, orphan)

    @pytest.mark.parametrize("purged", PURGE_CASES)
    def test_values_that_were_over_are_purged_up_to_the_limit_and_no_others(
        self, on: StorageHarness, purged: PurgeKind
    ) -> None:
        over = [PURGE_CASES[purged](on, NOW - SECOND) for _ in range(5)]
        remaining = [create(on, at) for create in PURGE_CASES.values() for at in (NOW, NOW + SECOND)] + [
            create(on) for create in SERVED_ROWS
        ]
        due_elsewhere = [create(on, NOW - SECOND) for kind, create in PURGE_CASES.items() if kind is not purged]
        on.store(*over, *remaining, *due_elsewhere)
        stored = on.read.purges.count_stored(purged, 1000)
        assert [on.read.purges.count_expired(purged, NOW, limit) for limit in (2, 1000)] == [2, 5]
        assert on.read.purges.count_stored(purged, 2) >= 2
        went = [on.purge(purged, NOW, 2) for _ in range(6)]
        assert (sum(went), went[-1], max(went) <= 2) == (5, 0, True), went
        assert on.unchanged(*over, *remaining, *due_elsewhere) == [*remaining, *due_elsewhere]
        assert on.read.purges.count_expired(purged, NOW, 2) == 0
        assert on.read.purges.count_stored(purged, 1000) == stored - 5

    @pytest.mark.parametrize("purged", PURGE_CASES)
    def test_values_that_were_over_are_found_oldest_first_and_from_a_place_on(
        self, on: StorageHarness, purged: PurgeKind
    ) -> None:
        over = [PURGE_CASES[purged](on, NOW - step * SECOND) for step in (2, 3, 1, 2, 2)]
        latest, oldest, newest, *_ = over
        on.store(*over)
        find = partial(on.read.purges.find_candidates, purged, NOW)
        first = find(1)
        # Rows with the same expiration are found one after the other, whether earlier ones were deleted or not.
        looks = [first]
        for _ in range(4):
            looks.append(find(1, cursor=looks[-1].cursor))
        keys = [key for look in looks for key in look.keys]
        assert len(keys) == len(set(keys)) == 5
        assert list(find(10).keys) == keys
        rest = find(10, cursor=looks[-1].cursor)
        assert (list(rest.keys), rest.cursor) == ([], None)
        assert on.write.purges.delete(purged, first.keys, NOW) == 1
        assert on.find_stored(oldest) is None
        assert on.write.purges.delete(purged, keys[:4], NOW) == 3
        assert on.unchanged(latest, newest) == [newest]
        assert on.write.purges.delete(purged, (), NOW) == 0

    @pytest.mark.parametrize("purged", PURGE_CASES)
    def test_values_that_were_found_stay_if_they_are_not_over_any_longer(
        self, on: StorageHarness, purged: PurgeKind
    ) -> None:
        values = [PURGE_CASES[purged](on, NOW) for _ in range(3)]
        on.store(*values)
        keys = on.read.purges.find_candidates(purged, NOW + SECOND, 10).keys
        assert on.write.purges.delete(purged, keys, NOW) == 0
        assert on.unchanged(*values) == values
        assert on.write.purges.delete(purged, keys, NOW + SECOND) == 3

    def test_values_refresh_tokens_are_purged_before_their_family_and_others_stay(self, on: StorageHarness) -> None:
        tokens = []
        for ends_at in (NOW - SECOND, NOW):
            family = on.store_value(make.token_family(on.human_user, on.application, ends_at=ends_at))
            tokens += [on.store_value(make.refresh_token(family, ends_at=ends_at)) for _ in range(3)]
        legal_holds = {on.human_user.organization_id}
        assert [on.read.purges.count_expired(PurgeKind.REFRESH_TOKENS, NOW, limit) for limit in (2, 10)] == [2, 3]
        assert on.read.purges.count_expired(PurgeKind.REFRESH_TOKENS, NOW, 10, legal_holds=legal_holds) == 0
        assert on.purge(PurgeKind.REFRESH_TOKENS, NOW, 10, legal_holds=legal_holds) == 0
        assert [on.purge(PurgeKind.REFRESH_TOKENS, NOW, 2) for _ in range(3)] == [2, 1, 0]
        assert on.unchanged(*tokens) == tokens[3:]
        assert on.purge(PurgeKind.FAMILIES, NOW, 10) == 1

    @pytest.mark.parametrize("purged", sorted(LEGAL_HOLD_KINDS & PURGE_CASES.keys()))
    def test_values_that_are_held_are_looked_at_only_so_many_at_a_time(
        self, on: StorageHarness, purged: PurgeKind
    ) -> None:
        on.store(*(PURGE_CASES[purged](on, NOW - step * SECOND) for step in (3, 3, 3, 2, 2)))
        legal_holds = {on.human_user.id, on.service_user.id}
        user = make.human_user(on.organization)
        goes = {
            PurgeKind.ACCESS_TOKENS: make.access_token(user, expires_at=NOW - SECOND),
            PurgeKind.FAMILIES: make.token_family(user, on.application, ends_at=NOW - SECOND),
            PurgeKind.SESSIONS: make.session(user, ends_at=NOW - SECOND),
        }[purged]
        on.store(user, goes)
        looks = [on.read.purges.find_candidates(purged, NOW, 2, legal_holds=legal_holds)]
        for _ in range(3):
            looks.append(
                on.read.purges.find_candidates(purged, NOW, 2, legal_holds=legal_holds, cursor=looks[-1].cursor)
            )
        assert [len(look.keys) for look in looks] == [0, 0, 1, 0]
        assert [look.cursor is None for look in looks] == [False, False, False, True]
        assert on.read.purges.count_expired(purged, NOW, 1, legal_holds=legal_holds) == 1
        assert (
            on.write.purges.delete(
                purged, on.read.purges.find_candidates(purged, NOW, 10, legal_holds=legal_holds).keys, NOW
            )
            == 1
        )
        assert on.find_stored(goes) is None

    def test_values_of_families_that_are_held_or_empty_are_passed_over(self, on: StorageHarness) -> None:
        """Refresh tokens are found by family, which may have more of them than one search returns."""
        user = make.human_user(on.organization)
        on.store(user)
        token_family, _, large = (
            on.store_value(make.token_family(person, on.application, ends_at=NOW - step * SECOND))
            for step, person in ((3, on.human_user), (2, user), (1, user))
        )
        tokens = [
            make.refresh_token(family, ends_at=family.ends_at)
            for family in (token_family, token_family, token_family, large, large, large)
        ]
        on.store(*tokens)
        assert on.read.purges.count_expired(PurgeKind.REFRESH_TOKENS, NOW, 10, legal_holds={on.human_user.id}) == 3
        assert on.purge_all(PurgeKind.REFRESH_TOKENS, NOW, 2, legal_holds={on.human_user.id}) == 3
        assert on.unchanged(*tokens) == tokens[:3]

    def test_values_that_never_are_over_are_passed_over(self, on: StorageHarness) -> None:
        old = NOW - 2 * SECOND
        codes = [make.authorization_code(on.family, expires_at=old, redeemed_at=old) for _ in range(3)]
        on.store(*codes, make.authorization_code(on.family, expires_at=NOW - SECOND))
        assert on.purge_all(PurgeKind.CODES, NOW, 2) == 1
        assert on.unchanged(*codes) == codes

    @pytest.mark.parametrize("purged", sorted(LEGAL_HOLD_KINDS & PURGE_CASES.keys()))
    def test_values_that_were_found_stay_if_they_are_held_now(self, on: StorageHarness, purged: PurgeKind) -> None:
        over = [PURGE_CASES[purged](on, NOW - SECOND) for _ in range(3)]
        on.store(*over)
        keys = on.read.purges.find_candidates(purged, NOW, 10).keys
        legal_holds = {on.human_user.organization_id, on.service_user.organization_id}
        assert on.write.purges.delete(purged, keys, NOW, legal_holds=legal_holds) == 0
        assert on.unchanged(*over) == over

    @pytest.mark.parametrize("purged", sorted(LEGAL_HOLD_KINDS & PURGE_CASES.keys()))
    def test_values_that_are_held_are_not_purged(self, on: StorageHarness, purged: PurgeKind) -> None:
        over = [PURGE_CASES[purged](on, NOW - SECOND) for _ in range(3)]
        on.store(*over)
        people = (on.human_user, on.service_user)
        for legal_holds in ({item.organization_id for item in people}, {item.id for item in people}):
            assert on.purge(purged, NOW, 10, legal_holds=legal_holds | {make_id()}) == 0
            assert on.unchanged(*over) == over
            assert on.read.purges.count_expired(purged, NOW, 10, legal_holds=legal_holds) == 0
        assert on.purge(purged, NOW, 10, legal_holds={make_id()}) == 3

    def test_values_that_are_nobodys_are_not_held(self, on: StorageHarness) -> None:
        on.store(make.access_token(None, application_id=on.application.id, expires_at=NOW - SECOND))
        assert on.purge(PurgeKind.ACCESS_TOKENS, NOW, 10, legal_holds={on.organization.id}) == 1
