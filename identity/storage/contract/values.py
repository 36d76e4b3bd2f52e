"""Contract of all values, in whichever store."""

from collections.abc import Callable
from datetime import UTC, datetime
from functools import partial
from typing import Any

import pytest

from identity.domain import authentication
from identity.domain.domains import DomainProof
from identity.domain.permissions import ManagerLevel, ResourceKey
from identity.domain.users import TokenFormat
from identity.storage.contract import factories as make
from identity.storage.contract.factories import NOW, SECOND, make_id
from identity.storage.contract.harness import ContractBase, StorageHarness, add
from identity.storage.errors import DuplicateValue, RowNotFound
from identity.storage.stores.purges import LEGAL_HOLD_KINDS, PurgeKind

LAST_MOMENT = datetime(9999, 12, 31, 23, 59, 59, tzinfo=UTC)
SCOPE = ("openid", "z", "a")

#: One value of each kind with every field set; its parents are stored.
COMPLETE_VALUES: dict[str, Callable[[StorageHarness], Any]] = {
    "instance": lambda on: make.instance(on.project),
    "domain": lambda on: make.organization_domain(on.organization),
    "domain that counts": lambda on: make.organization_domain(proof=DomainProof.DNS, verified_at=NOW),
    "role": lambda on: make.project_role(on.project, key="löwe", display_name="Löwe 株", group="Größe"),
    "password": lambda on: make.password_hash(on.human_user, must_change=True),
    "key": lambda on: make.service_user_key(
        on.service_user, public_key=bytes(range(256)), expires_at=LAST_MOMENT, last_used_at=NOW + SECOND
    ),
    "secret": lambda on: make.service_user_secret(on.service_user, digest=bytes(range(32)), last_used_at=NOW + SECOND),
    "personal access token": lambda on: make.personal_access_token(
        on.service_user, name="Nächtliche 株", scope=SCOPE, expires_at=LAST_MOMENT, last_used_at=NOW + SECOND
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
    "session": lambda on: make.session(
        on.human_user,
        digest=bytes(range(32)),
        authenticated_at=NOW + SECOND,
        selected_at=NOW + 2 * SECOND,
        last_seen_at=NOW + 3 * SECOND,
        ends_at=NOW + 4 * SECOND,
        proofs=(authentication.Proof("password", ("pwd",), NOW), authentication.Proof("ü", (), NOW + SECOND)),
        user_agent="Bröwser/1.0 (株; x86_64)",
        client_address="2001:db8::1",
        ended_at=NOW + 5 * SECOND,
    ),
    "request": lambda on: make.pending_authorization(
        digest=bytes(range(32)),
        parameters={"client_id": "shop", "state": "ü 株\u2028\U0001f511\x00", "scope": "openid profile", "": ""},
        target="/account?x=ü",
        login_name="ada@acme.example",
        ui_locales="de-CH fr",
        user_id=on.human_user.id,
        authenticated_at=NOW + SECOND,
        proofs=(authentication.Proof("password", ("pwd",), NOW), authentication.Proof("ü", (), NOW + SECOND)),
        session_id="gone",
        done=frozenset({"password_change", "consent"}),
        finished_at=NOW + 2 * SECOND,
        version=7,
    ),
    "bare request": lambda on: make.pending_authorization(parameters={}),
    "family": lambda on: make.token_family(
        on.human_user,
        on.application,
        scope=SCOPE,
        session_id="session",
        offline=False,
        methods=("pwd", "otp"),
        acr="urn:service:iam:acr:2",
        authenticated_at=NOW - SECOND,
        userinfo_claims=("email", "name"),
        id_token_claims=("nickname",),
        ends_at=NOW + SECOND,
        revoked_at=NOW,
    ),
    "code": lambda on: make.authorization_code(
        on.family,
        digest=bytes(range(224, 256)),
        redirect_uri="https://shop.example/rück?x=1",
        scope=(*SCOPE, "urn:service:iam:org:project:id:1:aud"),
        session_id="session",
        nonce="nönce",
        code_challenge="E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM",
        redeemed_at=NOW + SECOND,
    ),
    "access token": lambda on: make.access_token(
        on.human_user,
        on.application,
        on.family,
        digest=bytes(range(32)),
        format=TokenFormat.JWT,
        scope=SCOPE,
        audience=("b", "a", "https://identity.example"),
        key_id=on.store_value(make.service_user_key(on.service_user)).id,
        secret_id=on.store_value(make.service_user_secret(on.service_user)).id,
        client_secret_id=on.store_client_secret().id,
        session_id="session",
        actors=("z", "a"),
        revoked_at=NOW + SECOND,
    ),
    "refresh token": lambda on: make.refresh_token(
        on.family,
        digest=bytes(range(100, 132)),
        scope=SCOPE,
        session_id="session",
        nonce="nönce",
        predecessor_id=make_id(),
        rotated_at=NOW,
        revoked_at=NOW + SECOND,
    ),
    "signing key": lambda on: make.signing_key(
        2, algorithm="ES256", sealed_private_key=bytes(range(256)) * 8, active_at=NOW + SECOND
    ),
    "message": lambda on: make.outbox_message(kind="logout", sealed=bytes(range(256)), attempts=3),
    "record": lambda on: make.record(
        on.human_user,
        on.application,
        plugin="größe",
        kind="a kind",
        key=bytes(range(32)),
        value={"text": "Zoë\n\x00株'\"", "number": 1.5, "list": [1, None, True, {"a": {}}], "": ""},
        sealed=bytes(range(256)),
        taken_at=NOW + 2 * SECOND,
        version=9,
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
        deleted, since = 0, None
        for _ in range(10):
            purge_candidates = on.read.purges.find_candidates(
                PurgeKind.REFRESH_TOKENS, NOW, 2, legal_holds={on.human_user.id}, cursor=since
            )
            deleted += on.write.purges.delete(
                PurgeKind.REFRESH_TOKENS, purge_candidates.keys, NOW, legal_holds={on.human_user.id}
            )
            since = purge_candidates.cursor
            if since is None:
                break
        assert (deleted, since) == (3, None)
        assert on.unchanged(*tokens) == tokens[:3]

    def test_values_that_never_are_over_are_passed_over(self, on: StorageHarness) -> None:
        codes = [
            make.authorization_code(on.family, expires_at=NOW - 2 * SECOND, redeemed_at=NOW - 2 * SECOND)
            for _ in range(3)
        ]
        on.store(*codes, make.authorization_code(on.family, expires_at=NOW - SECOND))
        deleted, since = 0, None
        for _ in range(4):
            purge_candidates = on.read.purges.find_candidates(PurgeKind.CODES, NOW, 2, cursor=since)
            deleted, since = (
                deleted + on.write.purges.delete(PurgeKind.CODES, purge_candidates.keys, NOW),
                purge_candidates.cursor,
            )
            if since is None:
                break
        assert (deleted, since) == (1, None)
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
