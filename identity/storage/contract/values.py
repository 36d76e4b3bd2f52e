"""What is demanded of all values, whichever store keeps them."""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any

import pytest

from identity.domain import authentication
from identity.domain.domains import Proof
from identity.domain.permissions import Level, ResourceKey
from identity.domain.users import TokenFormat
from identity.storage.contract.base import ContractBase, On, add
from identity.storage.contract.factories import (
    NOW,
    a_code,
    a_domain,
    a_family,
    a_human_user,
    a_key,
    a_manager,
    a_password,
    a_pending,
    a_personal_access_token,
    a_project_grant,
    a_project_role,
    a_record,
    a_refresh_token,
    a_service_user_secret,
    a_session,
    a_signing_key,
    a_user_grant,
    an_access_token,
    an_id,
    an_instance,
    an_organization,
    an_outgoing_message,
)
from identity.storage.errors import Duplicate, Missing
from identity.storage.stores.purges import HELD, Purged

SECOND = timedelta(seconds=1)
LAST_MOMENT = datetime(9999, 12, 31, 23, 59, 59, tzinfo=UTC)
SCOPE = ("openid", "z", "a")

#: One of each kind with a value of its own in each field; what it belongs to is stored.
FULL: dict[str, Callable[[On], Any]] = {
    "instance": lambda on: an_instance(on.project),
    "domain": lambda on: a_domain(on.organization),
    "domain that counts": lambda on: a_domain(proof=Proof.DNS, verified_at=NOW),
    "role": lambda on: a_project_role(on.project, key="löwe", display_name="Löwe 株", group="Größe"),
    "password": lambda on: a_password(on.human_user, must_change=True),
    "key": lambda on: a_key(
        on.service_user, public_key=bytes(range(256)), expires_at=LAST_MOMENT, last_used_at=NOW + SECOND
    ),
    "secret": lambda on: a_service_user_secret(on.service_user, digest=bytes(range(32)), last_used_at=NOW + SECOND),
    "personal access token": lambda on: a_personal_access_token(
        on.service_user, name="Nächtliche 株", scope=SCOPE, expires_at=LAST_MOMENT, last_used_at=NOW + SECOND
    ),
    "personal access token of no scope": lambda on: a_personal_access_token(on.service_user, scope=()),
    **{
        f"manager of {level}": lambda on, level=level: a_manager(  # type: ignore[misc]
            on.human_user,
            ResourceKey(level, an_id()),
            roles=frozenset({"A_ROLE", "B_ROLE"}),
            organization_id=None if level is Level.INSTANCE else on.organization.id,
            version=2,
        )
        for level in Level
    },
    "project grant of no role": lambda on: a_project_grant(on.project, on.other_organization, roles=frozenset()),
    "session": lambda on: a_session(
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
    "request": lambda on: a_pending(
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
    "bare request": lambda on: a_pending(parameters={}),
    "family": lambda on: a_family(
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
    "code": lambda on: a_code(
        on.family,
        digest=bytes(range(224, 256)),
        redirect_uri="https://shop.example/rück?x=1",
        scope=(*SCOPE, "urn:service:iam:org:project:id:1:aud"),
        session_id="session",
        nonce="nönce",
        code_challenge="E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM",
        redeemed_at=NOW + SECOND,
    ),
    "access token": lambda on: an_access_token(
        on.human_user,
        on.application,
        on.family,
        digest=bytes(range(32)),
        format=TokenFormat.JWT,
        scope=SCOPE,
        audience=("b", "a", "https://identity.example"),
        key_id=on.saved(a_key(on.service_user)).id,
        secret_id=on.saved(a_service_user_secret(on.service_user)).id,
        client_secret_id=on.saved_client_secret().id,
        session_id="session",
        actors=("z", "a"),
        revoked_at=NOW + SECOND,
    ),
    "refresh token": lambda on: a_refresh_token(
        on.family,
        digest=bytes(range(100, 132)),
        scope=SCOPE,
        session_id="session",
        nonce="nönce",
        predecessor_id=an_id(),
        rotated_at=NOW,
        revoked_at=NOW + SECOND,
    ),
    "signing key": lambda on: a_signing_key(
        2, algorithm="ES256", sealed_private_key=bytes(range(256)) * 8, active_at=NOW + SECOND
    ),
    "message": lambda on: an_outgoing_message(kind="logout", sealed=bytes(range(256)), attempts=3),
    "record": lambda on: a_record(
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
    "bare record": lambda on: a_record(expires_at=None),
}

#: What no two values have: the field that is told, if there is one name for it, and two values, the first one stored.
TAKEN: dict[str, tuple[str, Callable[[On], Any], Callable[[On, Any], Any]]] = {
    "instance": (
        "instance",
        lambda on: an_instance(on.project),
        lambda on, first: an_instance(on.project, created_at=NOW + SECOND),
    ),
    "primary domain": (
        "primary_domain",
        lambda on: on.organization,
        lambda on, first: an_organization(primary_domain=first.primary_domain),
    ),
    "domain that an organization waits for": (
        "domain",
        lambda on: a_domain(on.organization),
        lambda on, first: a_domain(on.organization, name=first.name),
    ),
    "domain that counts": (
        "domain",
        lambda on: a_domain(on.other_organization, proof=Proof.DNS, verified_at=NOW),
        lambda on, first: a_domain(name=first.name, proof=Proof.FILE, verified_at=NOW),
    ),
    "role": (
        "key",
        lambda on: a_project_role(on.project),
        lambda on, first: a_project_role(on.project, key=first.key, group="Other"),
    ),
    "project grant": (
        "organization_id",
        lambda on: a_project_grant(on.project, on.other_organization),
        lambda on, first: a_project_grant(on.project, on.other_organization),
    ),
    "user grant": (
        "user_id",
        lambda on: a_user_grant(on.human_user, on.project),
        lambda on, first: a_user_grant(on.human_user, on.project),
    ),
    "user grant by a project grant": (
        "user_id",
        lambda on: a_user_grant(
            on.human_user, on.project, on.saved(a_project_grant(on.project, on.other_organization))
        ),
        lambda on, first: a_user_grant(on.human_user, on.project, project_grant_id=first.project_grant_id),
    ),
    "manager": (
        "user_id",
        lambda on: a_manager(on.human_user, ResourceKey(Level.PROJECT, "p")),
        lambda on, first: a_manager(on.human_user, first.resource),
    ),
    "key": ("", lambda on: a_key(on.service_user), lambda on, first: a_key(on.human_user, id=first.id)),
    "secret": (
        "",
        lambda on: a_service_user_secret(on.service_user),
        lambda on, first: a_service_user_secret(on.human_user, id=first.id),
    ),
    "personal access token": (
        "",
        lambda on: a_personal_access_token(on.service_user),
        lambda on, first: a_personal_access_token(on.human_user, id=first.id),
    ),
    "session": ("id", lambda on: on.session, lambda on, first: a_session(on.human_user, id=first.id)),
    "digest of a session": (
        "digest",
        lambda on: on.session,
        lambda on, first: a_session(on.human_user, digest=first.digest),
    ),
    "request": ("id", lambda on: a_pending(), lambda on, first: a_pending(id=first.id)),
    "code": ("", lambda on: a_code(on.family), lambda on, first: a_code(on.family, digest=first.digest, nonce="other")),
    "refresh token": (
        "",
        lambda on: a_refresh_token(on.family),
        lambda on, first: a_refresh_token(on.family, digest=first.digest, nonce="other"),
    ),
    "signing key": ("", lambda on: a_signing_key(1), lambda on, first: a_signing_key(2, id=first.id)),
    "generation": ("generation", lambda on: a_signing_key(1), lambda on, first: a_signing_key(1)),
    "message": (
        "id",
        lambda on: an_outgoing_message(),
        lambda on, first: an_outgoing_message(id=first.id, sealed=b"other"),
    ),
}

#: Values that lack what they belong to.
ORPHANS: tuple[Callable[[On], Any], ...] = (
    lambda on: a_project_role(),
    lambda on: a_password(),
    lambda on: a_key(),
    lambda on: a_service_user_secret(),
    lambda on: a_personal_access_token(),
    lambda on: a_session(),
    lambda on: a_pending(user_id=an_id()),
    lambda on: a_family(None, on.application),
    lambda on: a_family(on.human_user, None),
    lambda on: a_code(a_family(on.human_user, on.application)),
    lambda on: a_refresh_token(a_family(on.human_user, on.application)),
)

#: How to make what is over at a moment.
PURGED: dict[Purged, Callable[[On, datetime], Any]] = {
    Purged.FAMILIES: lambda on, at: a_family(on.human_user, on.application, ends_at=at),
    Purged.ACCESS_TOKENS: lambda on, at: an_access_token(on.service_user, expires_at=at),
    Purged.CODES: lambda on, at: a_code(on.family, expires_at=at),
    Purged.REQUESTS: lambda on, at: a_pending(expires_at=at),
    Purged.SESSIONS: lambda on, at: a_session(on.human_user, ends_at=at),
    Purged.MESSAGES: lambda on, at: an_outgoing_message(kind=an_id(), created_at=at - SECOND, expires_at=at),
    Purged.RECORDS: lambda on, at: a_record(plugin=an_id(), expires_at=at),
}
#: What has served, and is not over for that.
SERVED: tuple[Callable[[On], Any], ...] = (
    lambda on: a_code(on.family, expires_at=NOW - SECOND, redeemed_at=NOW - SECOND),
    lambda on: a_pending(finished_at=NOW - SECOND),
    lambda on: a_session(on.human_user, ended_at=NOW - SECOND),
    lambda on: a_record(taken_at=NOW - SECOND),
    lambda on: a_record(expires_at=None),
)


class ValueContract(ContractBase):
    """A value comes back as it was stored, is refused where another has its place, and goes when it is over."""

    @pytest.mark.parametrize("kind", FULL)
    def test_values_come_back_as_they_were_added(self, on: On, kind: str) -> None:
        value = FULL[kind](on)
        assert on.stored(value) is None
        assert on.stored(on.saved(value)) == value

    @pytest.mark.parametrize("name", TAKEN)
    def test_values_that_are_unique_are_refused_a_second_time_and_the_transaction_goes_on(
        self, on: On, name: str
    ) -> None:
        field, make_first, make_second = TAKEN[name]
        first, other = make_first(on), a_human_user(on.organization)
        if on.stored(first) is None:
            on.save(first)
        second = make_second(on, first)
        with on.writing() as storage:
            with pytest.raises(Duplicate) as refusal:
                add(storage, second)
            add(storage, other)
        assert refusal.value.field == field or not field
        assert on.left(first, other) == [first, other]
        assert on.left(second) == []

    def test_values_need_what_they_belong_to_and_the_transaction_goes_on(self, on: On) -> None:
        orphans = [orphan(on) for orphan in ORPHANS]
        with on.writing() as storage:
            for orphan in orphans:
                with pytest.raises(Missing):
                    add(storage, orphan)

    @pytest.mark.parametrize("purged", PURGED)
    def test_values_that_were_over_are_purged_up_to_the_limit_and_no_others(self, on: On, purged: Purged) -> None:
        over = [PURGED[purged](on, NOW - SECOND) for _ in range(5)]
        kept = [make(on, at) for make in PURGED.values() for at in (NOW, NOW + SECOND)] + [make(on) for make in SERVED]
        others = [make(on, NOW - SECOND) for kind, make in PURGED.items() if kind is not purged]
        on.save(*over, *kept, *others)
        stored = on.read.purges.kept(purged, 1000)
        assert [on.read.purges.over(purged, NOW, limit) for limit in (2, 1000)] == [2, 5]
        assert on.read.purges.kept(purged, 2) >= 2
        went = [on.purged(purged, NOW, 2) for _ in range(6)]
        assert (sum(went), went[-1], max(went) <= 2) == (5, 0, True), went
        assert on.left(*over, *kept, *others) == [*kept, *others]
        assert on.read.purges.over(purged, NOW, 2) == 0
        assert on.read.purges.kept(purged, 1000) == stored - 5

    @pytest.mark.parametrize("purged", PURGED)
    def test_values_that_were_over_are_found_oldest_first_and_from_a_place_on(self, on: On, purged: Purged) -> None:
        over = [PURGED[purged](on, NOW - step * SECOND) for step in (2, 3, 1, 2, 2)]
        latest, oldest, newest, *_ = over
        on.save(*over)
        find = partial(on.read.purges.find, purged, NOW)
        first = find(1)
        # Those of one moment are found one after the other, whether those before them went or not.
        looks = [first]
        for _ in range(4):
            looks.append(find(1, since=looks[-1].last))
        keys = [key for look in looks for key in look.keys]
        assert len(keys) == len(set(keys)) == 5
        assert list(find(10).keys) == keys
        rest = find(10, since=looks[-1].last)
        assert (list(rest.keys), rest.last) == ([], None)
        assert on.write.purges.delete(purged, first.keys, NOW) == 1
        assert on.stored(oldest) is None
        assert on.write.purges.delete(purged, keys[:4], NOW) == 3
        assert on.left(latest, newest) == [newest]
        assert on.write.purges.delete(purged, (), NOW) == 0

    @pytest.mark.parametrize("purged", PURGED)
    def test_values_that_were_found_stay_if_they_are_not_over_any_longer(self, on: On, purged: Purged) -> None:
        values = [PURGED[purged](on, NOW) for _ in range(3)]
        on.save(*values)
        keys = on.read.purges.find(purged, NOW + SECOND, 10).keys
        assert on.write.purges.delete(purged, keys, NOW) == 0
        assert on.left(*values) == values
        assert on.write.purges.delete(purged, keys, NOW + SECOND) == 3

    def test_values_refresh_tokens_are_purged_before_their_family_and_others_stay(self, on: On) -> None:
        tokens = []
        for ends_at in (NOW - SECOND, NOW):
            family = on.saved(a_family(on.human_user, on.application, ends_at=ends_at))
            tokens += [on.saved(a_refresh_token(family, ends_at=ends_at)) for _ in range(3)]
        held = {on.human_user.organization_id}
        assert [on.read.purges.over(Purged.REFRESH_TOKENS, NOW, limit) for limit in (2, 10)] == [2, 3]
        assert on.read.purges.over(Purged.REFRESH_TOKENS, NOW, 10, held=held) == 0
        assert on.purged(Purged.REFRESH_TOKENS, NOW, 10, held=held) == 0
        assert [on.purged(Purged.REFRESH_TOKENS, NOW, 2) for _ in range(3)] == [2, 1, 0]
        assert on.left(*tokens) == tokens[3:]
        assert on.purged(Purged.FAMILIES, NOW, 10) == 1

    @pytest.mark.parametrize("purged", sorted(HELD & PURGED.keys()))
    def test_values_that_are_held_are_looked_at_only_so_many_at_a_time(self, on: On, purged: Purged) -> None:
        on.save(*(PURGED[purged](on, NOW - step * SECOND) for step in (3, 3, 3, 2, 2)))
        held = {on.human_user.id, on.service_user.id}
        other = a_human_user(on.organization)
        goes = {
            Purged.ACCESS_TOKENS: an_access_token(other, expires_at=NOW - SECOND),
            Purged.FAMILIES: a_family(other, on.application, ends_at=NOW - SECOND),
            Purged.SESSIONS: a_session(other, ends_at=NOW - SECOND),
        }[purged]
        on.save(other, goes)
        looks = [on.read.purges.find(purged, NOW, 2, held=held)]
        for _ in range(3):
            looks.append(on.read.purges.find(purged, NOW, 2, held=held, since=looks[-1].last))
        assert [len(look.keys) for look in looks] == [0, 0, 1, 0]
        assert [look.last is None for look in looks] == [False, False, False, True]
        assert on.read.purges.over(purged, NOW, 1, held=held) == 1
        assert on.write.purges.delete(purged, on.read.purges.find(purged, NOW, 10, held=held).keys, NOW) == 1
        assert on.stored(goes) is None

    def test_values_of_families_that_are_held_or_empty_are_passed_over(self, on: On) -> None:
        """Refresh tokens are looked for by their family; of one there may be more than a look finds."""
        other = a_human_user(on.organization)
        on.save(other)
        kept, _, large = (
            on.saved(a_family(person, on.application, ends_at=NOW - step * SECOND))
            for step, person in ((3, on.human_user), (2, other), (1, other))
        )
        tokens = [a_refresh_token(one, ends_at=one.ends_at) for one in (kept, kept, kept, large, large, large)]
        on.save(*tokens)
        assert on.read.purges.over(Purged.REFRESH_TOKENS, NOW, 10, held={on.human_user.id}) == 3
        gone, since = 0, None
        for _ in range(10):
            found = on.read.purges.find(Purged.REFRESH_TOKENS, NOW, 2, held={on.human_user.id}, since=since)
            gone += on.write.purges.delete(Purged.REFRESH_TOKENS, found.keys, NOW, held={on.human_user.id})
            since = found.last
            if since is None:
                break
        assert (gone, since) == (3, None)
        assert on.left(*tokens) == tokens[:3]

    def test_values_that_never_are_over_are_passed_over(self, on: On) -> None:
        codes = [a_code(on.family, expires_at=NOW - 2 * SECOND, redeemed_at=NOW - 2 * SECOND) for _ in range(3)]
        on.save(*codes, a_code(on.family, expires_at=NOW - SECOND))
        gone, since = 0, None
        for _ in range(4):
            found = on.read.purges.find(Purged.CODES, NOW, 2, since=since)
            gone, since = gone + on.write.purges.delete(Purged.CODES, found.keys, NOW), found.last
            if since is None:
                break
        assert (gone, since) == (1, None)
        assert on.left(*codes) == codes

    @pytest.mark.parametrize("purged", sorted(HELD & PURGED.keys()))
    def test_values_that_were_found_stay_if_they_are_held_now(self, on: On, purged: Purged) -> None:
        over = [PURGED[purged](on, NOW - SECOND) for _ in range(3)]
        on.save(*over)
        keys = on.read.purges.find(purged, NOW, 10).keys
        held = {on.human_user.organization_id, on.service_user.organization_id}
        assert on.write.purges.delete(purged, keys, NOW, held=held) == 0
        assert on.left(*over) == over

    @pytest.mark.parametrize("purged", sorted(HELD & PURGED.keys()))
    def test_values_that_are_held_are_not_purged(self, on: On, purged: Purged) -> None:
        over = [PURGED[purged](on, NOW - SECOND) for _ in range(3)]
        on.save(*over)
        people = (on.human_user, on.service_user)
        for held in ({one.organization_id for one in people}, {one.id for one in people}):
            assert on.purged(purged, NOW, 10, held=held | {an_id()}) == 0
            assert on.left(*over) == over
            assert on.read.purges.over(purged, NOW, 10, held=held) == 0
        assert on.purged(purged, NOW, 10, held={an_id()}) == 3

    def test_values_that_are_nobodys_are_not_held(self, on: On) -> None:
        on.save(an_access_token(None, application_id=on.application.id, expires_at=NOW - SECOND))
        assert on.purged(Purged.ACCESS_TOKENS, NOW, 10, held={on.organization.id}) == 1
