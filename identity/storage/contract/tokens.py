"""Contract of token families, access tokens and authorization codes."""

from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from identity.domain.access_revocations import AccessScope
from identity.domain.applications import ApplicationClient
from identity.domain.authorization_codes import AuthorizationCode, PresentedCode
from identity.domain.deletion_impact import DeletionTarget
from identity.domain.tokens import AccessToken, PresentedAccessToken
from identity.domain.users import Subject, TokenFormat
from identity.storage.backend import Storage
from identity.storage.contract import factories as make
from identity.storage.contract.factories import NOW, SECOND, make_digest, make_id
from identity.storage.contract.harness import ContractBase, StorageHarness, require_found
from identity.storage.errors import AlreadyUsed, DuplicateValue, RowNotFound
from identity.storage.stores.purges import PurgeKind

#: How a code and a refresh token are made for a family, and found.
SINGLE_USE: dict[str, tuple[Callable[..., Any], Callable[[Storage, bytes], Any]]] = {
    "code": (make.authorization_code, lambda storage, digest: storage.tokens.find_authorization_code(digest)),
    "refresh token": (make.refresh_token, lambda storage, digest: storage.tokens.find_refresh_token(digest)),
}


class TokenContract(ContractBase):
    """A token is found with everything needed to judge it; revoking is final, and revoking a family revokes its
    tokens."""

    @pytest.fixture
    def token(self, on: StorageHarness) -> AccessToken:
        return on.store_value(make.access_token(on.human_user, on.application, on.family))

    def issued(self, on: StorageHarness, token: AccessToken) -> PresentedAccessToken:
        return require_found(on.read.tokens.find_access_token(token.digest))

    def test_families_a_revoked_family_keeps_its_moment_and_all_its_tokens_are_dead(self, on: StorageHarness) -> None:
        token_family = make.token_family(on.human_user, on.application)
        access, refresh = make.access_token(on.human_user, on.application, on.family), make.refresh_token(on.family)
        other_access = make.access_token(on.human_user, on.application, token_family)
        other_refresh = make.refresh_token(token_family)
        late_access, late_refresh = replace(access, digest=make_digest(), id=make_id()), make.refresh_token(on.family)
        on.store(token_family, access, refresh, other_access, other_refresh)
        for at in (NOW, NOW + SECOND):
            on.write.tokens.revoke_family(on.family.id, at)
        on.store(late_access, late_refresh)
        assert on.find_stored(on.family) == replace(on.family, revoked_at=NOW)
        assert [self.issued(on, access_token).is_live(NOW) for access_token in (access, late_access, other_access)] == [
            False,
            False,
            True,
        ]
        for refresh_token in (refresh, late_refresh):
            with pytest.raises(RowNotFound):
                on.write.tokens.rotate_refresh_token(refresh_token.digest, make.refresh_token(on.family), NOW)
        on.write.tokens.rotate_refresh_token(other_refresh.digest, make.refresh_token(token_family), NOW)

    def test_access_tokens_are_found_by_their_whole_digest(self, on: StorageHarness, token: AccessToken) -> None:
        for digest in (make_digest(), token.digest[:-1]):
            assert on.read.tokens.find_access_token(digest) is None
        assert on.read.tokens.find_refresh_token(token.digest) is None, "an access token is no refresh token"

    def test_access_tokens_a_taken_digest_is_refused(self, on: StorageHarness, token: AccessToken) -> None:
        with pytest.raises(DuplicateValue):
            on.write.tokens.add_access_token(make.access_token(on.service_user, digest=token.digest))
        assert on.find_stored(token) == token

    def test_access_tokens_are_found_with_everything_around_them(self, on: StorageHarness, token: AccessToken) -> None:
        stranger = make.human_user(on.other_organization)
        foreign, of_program = make.access_token(stranger, on.application), make.access_token(on.service_user)
        of_application = make.access_token(None, on.application)
        claiming = make.token_family(on.human_user, on.application)
        claiming = replace(claiming, userinfo_claims=("email", "name"), authenticated_at=NOW)
        of_claiming = make.access_token(on.human_user, on.application, claiming)
        on.store(stranger, foreign, of_program, of_application, claiming, of_claiming)
        client = ApplicationClient(on.application, (), on.project, on.organization)
        expected = [
            PresentedAccessToken(
                token, Subject(on.human_user, on.organization), client, methods=on.family.methods, acr=on.family.acr
            ),
            PresentedAccessToken(foreign, Subject(stranger, on.other_organization), client),
            PresentedAccessToken(of_program, Subject(on.service_user, on.organization), None),
            PresentedAccessToken(of_application, None, client),
            PresentedAccessToken(
                of_claiming,
                Subject(on.human_user, on.organization),
                client,
                claims=("email", "name"),
                methods=claiming.methods,
                acr=claiming.acr,
                authenticated_at=NOW,
            ),
        ]
        assert [self.issued(on, presented_access_token.token) for presented_access_token in expected] == expected
        assert all(presented_access_token.is_live(NOW) for presented_access_token in expected)

    @pytest.mark.parametrize("member", ["human_user", "application", "project", "organization"])
    def test_access_tokens_a_token_is_dead_while_a_member_is_deactivated(
        self, on: StorageHarness, token: AccessToken, member: str
    ) -> None:
        store: Any = getattr(on.write, "users" if member == "human_user" else f"{member}s")
        store.update(replace(getattr(on, member), active=False, version=2))
        assert not self.issued(on, token).is_live(NOW), f"the {member} is deactivated"

    def test_access_tokens_a_token_is_dead_once_its_session_has_ended_while_it_is_known(
        self, on: StorageHarness
    ) -> None:
        sessions = (on.session.id, make_id(), None)
        tokens = [make.access_token(on.human_user, on.application, on.family, session_id=item) for item in sessions]
        on.store(*tokens)
        assert all(self.issued(on, token).is_live(NOW) for token in tokens)
        on.write.sessions.end(on.session.id, NOW)
        assert [self.issued(on, token).is_live(NOW) for token in tokens] == [False, True, True]
        assert [self.issued(on, token).session_ended for token in tokens] == [True, False, False]
        assert on.purge(PurgeKind.SESSIONS, on.session.ends_at + SECOND, 10) == 1
        assert all(self.issued(on, token).is_live(NOW) for token in tokens)
        assert on.unchanged(*tokens, on.family) == [*tokens, on.family], "nothing is written to them"

    def test_access_tokens_a_revoked_token_keeps_its_moment(self, on: StorageHarness, token: AccessToken) -> None:
        access_token = on.store_value(make.access_token(on.human_user, on.application, on.family))
        for at in (NOW, NOW + SECOND):
            on.write.tokens.revoke_access_token(token.digest, at)
            on.write.tokens.revoke_access_token(make_digest(), at)
        assert on.find_stored(token) == replace(token, revoked_at=NOW)
        assert not self.issued(on, token).is_live(NOW)
        assert on.unchanged(access_token, on.family) == [access_token, on.family]

    def test_access_tokens_that_are_live_jwts_are_counted_by_issue_date(self, on: StorageHarness) -> None:
        jwt: dict[str, Any] = {"format": TokenFormat.JWT, "issued_at": NOW, "expires_at": NOW + 9 * SECOND}
        on.store(
            make.access_token(**jwt),
            make.access_token(**{**jwt, "issued_at": NOW + SECOND}),
            make.access_token(**{**jwt, "issued_at": NOW + 2 * SECOND}),
            make.access_token(**{**jwt, "issued_at": NOW - SECOND}),
            make.access_token(**{**jwt, "expires_at": NOW + SECOND}),
            make.access_token(**{**jwt, "revoked_at": NOW}),
            make.access_token(**{**jwt, "format": TokenFormat.OPAQUE}),
        )
        count = on.read.tokens.count_live_jwts
        assert count(NOW, NOW + 2 * SECOND, NOW + SECOND, 10) == 2
        assert count(NOW, NOW + 2 * SECOND, NOW + SECOND, 1) == 1
        assert count(NOW, NOW, NOW, 10) == 0

    @pytest.mark.parametrize(
        "parent",
        [
            *("user_id", "key_id", "secret_id", "client_secret_id", "personal_access_token_id", "application_id"),
            "family_id",
        ],
    )
    def test_access_tokens_of_unknown_parent_are_refused(self, on: StorageHarness, parent: str) -> None:
        with pytest.raises(RowNotFound):
            on.write.tokens.add_access_token(make.access_token(on.service_user, None, None, **{parent: make_id()}))

    def test_families_of_a_provider_are_revoked_and_deleted_with_it(self, on: StorageHarness) -> None:
        provider, other = (on.store_value(make.upstream_provider(on.organization)) for _ in range(2))
        first, second, foreign = (
            on.store_value(make.token_family(user, on.application, provider_id=origin.id))
            for user, origin in ((on.human_user, provider), (on.service_user, provider), (on.human_user, other))
        )
        tokens = [
            on.store_value(make.access_token(on.human_user, on.application, family)) for family in (first, foreign)
        ]
        with on.transaction() as storage:
            assert storage.tokens.revoke_for_provider(provider.id, NOW, user_id=on.human_user.id) == 1
            assert storage.tokens.revoke_for_provider(make_id(), NOW) == 0
        revoked = replace(first, revoked_at=NOW)
        assert [on.find_stored(family) for family in (first, second, foreign)] == [revoked, second, foreign]
        with on.transaction() as storage:
            assert storage.tokens.revoke_for_provider(provider.id, NOW + SECOND) == 1
        assert on.unchanged(revoked, foreign) == [revoked, foreign]
        assert on.find_stored(second) == replace(second, revoked_at=NOW + SECOND)
        on.write.upstream_providers.delete(provider.id)
        assert [on.find_stored(token) for token in tokens] == [None, tokens[1]]

    def test_access_tokens_of_a_user_are_revoked_with_all_families(self, on: StorageHarness) -> None:
        human_user = on.human_user
        family, earlier = on.family, make.token_family(human_user, on.application, revoked_at=NOW - SECOND)
        foreign = make.token_family(on.service_user, on.application)
        live = [make.access_token(human_user, on.application, family), make.access_token(human_user)]
        other_values: list[Any] = [
            make.access_token(human_user, on.application, revoked_at=NOW - SECOND),
            make.access_token(human_user, expires_at=NOW),
            make.access_token(on.service_user),
            make.access_token(None, on.application),
        ]
        on.store(earlier, foreign, *live, *other_values)
        with on.transaction() as storage:
            assert storage.tokens.revoke_for_user(human_user.id, NOW) == 1
            assert storage.tokens.revoke_for_user(human_user.id, NOW + SECOND) == 0
            assert storage.tokens.revoke_for_user(make_id(), NOW) == 0
        revoked: list[Any] = [*live, family]
        assert [on.find_stored(item) for item in revoked] == [replace(item, revoked_at=NOW) for item in revoked]
        assert on.unchanged(earlier, foreign, *other_values) == [earlier, foreign, *other_values]

    @pytest.mark.parametrize("target", [DeletionTarget.USER, DeletionTarget.APPLICATION, DeletionTarget.ORGANIZATION])
    def test_access_tokens_in_a_scope_are_revoked_together(self, on: StorageHarness, target: DeletionTarget) -> None:
        """By target: of the harness's user, of its application, and of its organization with both."""
        foreign_project, stranger = make.project(on.other_organization), make.human_user(on.other_organization)
        foreign, spared = make.application(foreign_project), make.human_user(on.organization)
        on.store(foreign_project, foreign, stranger, spared)
        rows = {
            (user.id, application.id): (family, make.access_token(user, application, family))
            for user in (on.human_user, spared, stranger)
            for application in (on.application, foreign)
            for family in (make.token_family(user, application),)
        }
        alone = make.access_token(None, on.application)
        personal = make.personal_access_token(on.human_user)
        on.store(*(item for pair in rows.values() for item in pair), alone, personal)
        id_ = {"user": on.human_user.id, "application": on.application.id}.get(target.value, on.organization.id)
        scope = AccessScope(
            target, id_, frozenset({spared.id}) if target is DeletionTarget.ORGANIZATION else frozenset()
        )
        with on.transaction() as storage:
            ended = storage.tokens.revoke_all(scope, NOW)
            assert storage.tokens.revoke_all(scope, NOW + SECOND) == 0
        users, clients = {on.human_user.id, stranger.id, spared.id}, {on.application.id, foreign.id}
        expected = {
            DeletionTarget.USER: {(on.human_user.id, client) for client in clients},
            DeletionTarget.APPLICATION: {(user, on.application.id) for user in users},
            DeletionTarget.ORGANIZATION: {
                *((on.human_user.id, client) for client in clients),
                (stranger.id, on.application.id),
            },
        }[target]
        revoked = {key for key, (family, _) in rows.items() if on.find_stored(family) != family}
        assert revoked == expected == {key for key, (_, token) in rows.items() if on.find_stored(token) != token}
        assert self.issued(on, alone).is_live(NOW) is (target is DeletionTarget.USER)
        found = on.read.credentials.find(type(personal), personal.id, on.human_user.id)
        assert (found is None) is (target is not DeletionTarget.APPLICATION)
        assert ended >= 2 * len(expected)


class AuthorizationCodeContract(ContractBase):
    """A code is redeemed once, by its own client, before it expires; a replay differs from an unknown code."""

    @pytest.fixture
    def code(self, on: StorageHarness) -> AuthorizationCode:
        return on.store_value(make.authorization_code(on.family))

    def test_codes_find_returns_everything_around_the_code_and_redeems_nothing(self, on: StorageHarness) -> None:
        code = make.authorization_code(on.family, session_id=on.session.id)
        used = make.authorization_code(on.family, redeemed_at=NOW)
        expired = make.authorization_code(on.family, expires_at=NOW - SECOND)
        on.store(code, used, expired)
        subject = Subject(on.human_user, on.organization)
        with on.transaction() as storage:
            for stored in (code, used, expired):
                assert storage.tokens.find_authorization_code(stored.digest) == PresentedCode(
                    stored, on.family, subject
                )
            assert storage.tokens.find_authorization_code(make_digest()) is None
            storage.tokens.redeem_authorization_code(code.digest, client_id=code.client_id, redeemed_at=NOW)
        closed = replace(on.organization, active=False, version=2)
        with on.transaction() as storage:
            storage.tokens.revoke_family(code.family_id, NOW)
            storage.organizations.update(closed)
        assert on.read.tokens.find_authorization_code(code.digest) == PresentedCode(
            replace(code, redeemed_at=NOW), replace(on.family, revoked_at=NOW), Subject(on.human_user, closed)
        )

    @pytest.mark.parametrize("last", [False, True])
    def test_codes_come_with_their_family_or_not_at_all(self, on: StorageHarness, last: bool) -> None:
        family = make.token_family(on.human_user, on.application)
        stray = make.token_family(on.human_user, make.application())
        code, authorization_code = make.authorization_code(family), make.authorization_code(stray)
        added = make.organization()
        with on.transaction() as storage:
            storage.tokens.add_family(family, code, is_last_write=last)
        assert on.unchanged(family, code) == [family, code]
        with on.transaction() as storage:
            with pytest.raises(RowNotFound):
                storage.tokens.add_family(stray, authorization_code, is_last_write=last)
            storage.organizations.add(added)
        assert on.unchanged(stray, authorization_code, added) == [added]

    @pytest.mark.parametrize("kind", SINGLE_USE)
    def test_codes_and_refresh_tokens_tell_that_the_session_has_ended_while_it_is_known(
        self, on: StorageHarness, kind: str
    ) -> None:
        create, find = SINGLE_USE[kind]
        stored = [create(on.family, session_id=item) for item in (on.session.id, None, make_id())]
        on.store(*stored)
        on.write.sessions.end(on.session.id, NOW)
        presented = [require_found(find(on.read, item.digest)) for item in stored]
        assert [item.session_ended for item in presented] == [True, False, False]
        assert [item.family for item in presented] == [on.family] * 3, "nothing is revoked"
        assert on.purge(PurgeKind.SESSIONS, on.session.ends_at + SECOND, 10) == 1
        assert not any(require_found(find(on.read, item.digest)).session_ended for item in stored)
        assert on.unchanged(*stored) == stored

    def test_codes_second_redemption_reports_code_even_if_expired_and_keeps_transaction_usable(
        self, on: StorageHarness, code: AuthorizationCode
    ) -> None:
        on.write.tokens.redeem_authorization_code(code.digest, client_id=code.client_id, redeemed_at=NOW)
        with on.transaction() as storage:
            for later in (NOW + SECOND, code.expires_at + timedelta(days=1)):
                with pytest.raises(AlreadyUsed) as refusal:
                    storage.tokens.redeem_authorization_code(code.digest, client_id=code.client_id, redeemed_at=later)
                assert refusal.value.value == replace(code, redeemed_at=NOW), "the first one is the one that counts"
                for digest, client_id in ((code.digest, "stranger"), (make_digest(), code.client_id)):
                    with pytest.raises(RowNotFound):
                        storage.tokens.redeem_authorization_code(digest, client_id=client_id, redeemed_at=later)
            storage.tokens.revoke_family(code.family_id, NOW)
        assert on.find_stored(on.family) == replace(on.family, revoked_at=NOW)

    @pytest.mark.parametrize("last", [False, True])
    @pytest.mark.parametrize("brings", [(), ("refresh",), ("access",), ("refresh", "access")])
    def test_codes_redeeming_stores_what_the_code_brings(
        self, on: StorageHarness, code: AuthorizationCode, brings: tuple[str, ...], last: bool
    ) -> None:
        for at, outcome in ((NOW, nullcontext()), (NOW, pytest.raises(AlreadyUsed))):
            new: dict[str, Any] = {
                "refresh": make.refresh_token(on.family),
                "access": make.access_token(on.human_user, on.application, on.family, digest=make_digest()),
            }
            new = {name: new[name] for name in brings}
            with on.transaction() as storage, outcome:
                redeemed = storage.tokens.redeem_authorization_code(
                    code.digest, client_id=code.client_id, redeemed_at=at, is_last_write=last, **new
                )
                assert redeemed == replace(code, redeemed_at=NOW)
            used_before = not isinstance(outcome, nullcontext)
            assert on.unchanged(*new.values()) == ([] if used_before else [*new.values()])

    @pytest.mark.parametrize("last", [False, True])
    def test_codes_are_not_redeemed_where_what_they_bring_cannot_be_stored(
        self, on: StorageHarness, code: AuthorizationCode, last: bool
    ) -> None:
        access = make.access_token(on.human_user, on.application, make.token_family(on.human_user, on.application))
        refresh = make.refresh_token(on.family)
        with pytest.raises(RowNotFound), on.transaction() as storage:
            storage.tokens.redeem_authorization_code(
                code.digest,
                client_id=code.client_id,
                redeemed_at=NOW,
                refresh=refresh,
                access=access,
                is_last_write=last,
            )
        assert on.unchanged(code, refresh) == [code]

    def test_codes_a_code_expires_to_the_second(self, on: StorageHarness, code: AuthorizationCode) -> None:
        authorization_code = on.store_value(make.authorization_code(on.family))
        on.write.tokens.redeem_authorization_code(
            code.digest, client_id=code.client_id, redeemed_at=code.expires_at - SECOND
        )
        with pytest.raises(RowNotFound):
            on.write.tokens.redeem_authorization_code(
                authorization_code.digest,
                client_id=authorization_code.client_id,
                redeemed_at=authorization_code.expires_at,
            )

    def test_codes_another_client_neither_gets_nor_burns_the_code(
        self, on: StorageHarness, code: AuthorizationCode
    ) -> None:
        with pytest.raises(RowNotFound):
            on.write.tokens.redeem_authorization_code(code.digest, client_id="stranger", redeemed_at=NOW)
        with on.transaction() as storage:
            with pytest.raises(RowNotFound):
                storage.tokens.redeem_authorization_code(code.digest, client_id="stranger", redeemed_at=NOW)
            redeemed = storage.tokens.redeem_authorization_code(code.digest, client_id=code.client_id, redeemed_at=NOW)
        assert replace(redeemed, redeemed_at=None) == code
