"""What is demanded of families and access tokens."""

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from identity.domain.applications import Client
from identity.domain.tokens import AccessToken, IssuedToken
from identity.domain.users import Subject
from identity.storage.contract.base import ContractBase, On, there
from identity.storage.contract.factories import (
    NOW,
    a_digest,
    a_family,
    a_human_user,
    a_refresh_token,
    an_access_token,
    an_id,
)
from identity.storage.errors import Duplicate, Missing
from identity.storage.stores.purges import Purged

SECOND = timedelta(seconds=1)


class TokenContract(ContractBase):
    """A token is found with all that decides whether it is live; revoked is for ever, with the family for all of it."""

    @pytest.fixture
    def token(self, on: On) -> AccessToken:
        """A stored token of ``human_user`` for ``application``."""
        return on.saved(an_access_token(on.human_user, on.application, on.family))

    def issued(self, on: On, token: AccessToken) -> IssuedToken:
        return there(on.read.tokens.find_issued(token.digest))

    def test_families_a_revoked_family_keeps_its_moment_and_all_its_tokens_are_dead(self, on: On) -> None:
        other = a_family(on.human_user, on.application)
        access, refresh = an_access_token(on.human_user, on.application, on.family), a_refresh_token(on.family)
        other_access, other_refresh = an_access_token(on.human_user, on.application, other), a_refresh_token(other)
        late_access, late_refresh = replace(access, digest=a_digest(), id=an_id()), a_refresh_token(on.family)
        on.save(other, access, refresh, other_access, other_refresh)
        for at in (NOW, NOW + SECOND):
            on.write.tokens.revoke_family(on.family.id, at)
        on.save(late_access, late_refresh)
        assert on.stored(on.family) == replace(on.family, revoked_at=NOW)
        assert [self.issued(on, each).live(NOW) for each in (access, late_access, other_access)] == [False, False, True]
        for each in (refresh, late_refresh):
            with pytest.raises(Missing):
                on.write.tokens.rotate(each.digest, a_refresh_token(on.family), NOW)
        on.write.tokens.rotate(other_refresh.digest, a_refresh_token(other), NOW)

    def test_access_tokens_are_found_by_their_whole_digest(self, on: On, token: AccessToken) -> None:
        for digest in (a_digest(), token.digest[:-1]):
            assert on.read.tokens.find_issued(digest) is None
        assert on.read.tokens.find_presented(token.digest) is None, "an access token is no refresh token"

    def test_access_tokens_a_taken_digest_is_refused(self, on: On, token: AccessToken) -> None:
        with pytest.raises(Duplicate):
            on.write.tokens.add_access(an_access_token(on.service_user, digest=token.digest))
        assert on.stored(token) == token

    def test_access_tokens_are_found_with_everything_around_them(self, on: On, token: AccessToken) -> None:
        stranger = a_human_user(on.other_organization)
        foreign, of_program = an_access_token(stranger, on.application), an_access_token(on.service_user)
        of_application, claiming = an_access_token(None, on.application), a_family(on.human_user, on.application)
        claiming = replace(claiming, userinfo_claims=("email", "name"), authenticated_at=NOW)
        of_claiming = an_access_token(on.human_user, on.application, claiming)
        on.save(stranger, foreign, of_program, of_application, claiming, of_claiming)
        client = Client(on.application, (), on.project, on.organization)
        expected = [
            IssuedToken(
                token,
                Subject(on.human_user, on.organization),
                client,
                methods=on.family.methods,
                acr=on.family.acr,
            ),
            IssuedToken(foreign, Subject(stranger, on.other_organization), client),
            IssuedToken(of_program, Subject(on.service_user, on.organization), None),
            IssuedToken(of_application, None, client),
            IssuedToken(
                of_claiming,
                Subject(on.human_user, on.organization),
                client,
                claims=("email", "name"),
                methods=claiming.methods,
                acr=claiming.acr,
                authenticated_at=NOW,
            ),
        ]
        assert [self.issued(on, each.token) for each in expected] == expected
        assert all(each.live(NOW) for each in expected)

    @pytest.mark.parametrize("member", ["human_user", "application", "project", "organization"])
    def test_access_tokens_a_token_is_dead_while_a_member_is_deactivated(
        self, on: On, token: AccessToken, member: str
    ) -> None:
        store: Any = getattr(on.write, "users" if member == "human_user" else f"{member}s")
        store.update(replace(getattr(on, member), active=False, version=2))
        assert not self.issued(on, token).live(NOW), f"the {member} is deactivated"

    def test_access_tokens_a_token_is_dead_once_its_session_has_ended_while_it_is_known(self, on: On) -> None:
        sessions = (on.session.id, an_id(), None)
        tokens = [an_access_token(on.human_user, on.application, on.family, session_id=one) for one in sessions]
        on.save(*tokens)
        assert all(self.issued(on, token).live(NOW) for token in tokens)
        on.write.sessions.end(on.session.id, NOW)
        assert [self.issued(on, token).live(NOW) for token in tokens] == [False, True, True]
        assert [self.issued(on, token).session_ended for token in tokens] == [True, False, False]
        assert on.purged(Purged.SESSIONS, on.session.ends_at + SECOND, 10) == 1
        assert all(self.issued(on, token).live(NOW) for token in tokens)
        assert on.left(*tokens, on.family) == [*tokens, on.family], "nothing is written to them"

    def test_access_tokens_a_revoked_token_keeps_its_moment(self, on: On, token: AccessToken) -> None:
        other = on.saved(an_access_token(on.human_user, on.application, on.family))
        for at in (NOW, NOW + SECOND):
            on.write.tokens.revoke_access(token.digest, at)
            on.write.tokens.revoke_access(a_digest(), at)
        assert on.stored(token) == replace(token, revoked_at=NOW)
        assert not self.issued(on, token).live(NOW)
        assert on.left(other, on.family) == [other, on.family]

    @pytest.mark.parametrize(
        "parent",
        [
            *("user_id", "key_id", "secret_id", "client_secret_id", "personal_access_token_id", "application_id"),
            "family_id",
        ],
    )
    def test_access_tokens_are_of_things_that_exist(self, on: On, parent: str) -> None:
        with pytest.raises(Missing):
            on.write.tokens.add_access(an_access_token(on.service_user, None, None, **{parent: an_id()}))

    def test_access_tokens_of_a_user_are_revoked_with_all_families(self, on: On) -> None:
        human_user = on.human_user
        family, earlier = on.family, a_family(human_user, on.application, revoked_at=NOW - SECOND)
        foreign = a_family(on.service_user, on.application)
        live = [an_access_token(human_user, on.application, family), an_access_token(human_user)]
        others: list[Any] = [
            an_access_token(human_user, on.application, revoked_at=NOW - SECOND),
            an_access_token(human_user, expires_at=NOW),
            an_access_token(on.service_user),
            an_access_token(None, on.application),
        ]
        on.save(earlier, foreign, *live, *others)
        with on.writing() as storage:
            assert storage.tokens.revoke_of_user(human_user.id, NOW) == 1
            assert storage.tokens.revoke_of_user(human_user.id, NOW + SECOND) == 0
            assert storage.tokens.revoke_of_user(an_id(), NOW) == 0
        revoked: list[Any] = [*live, family]
        assert [on.stored(one) for one in revoked] == [replace(one, revoked_at=NOW) for one in revoked]
        assert on.left(earlier, foreign, *others) == [earlier, foreign, *others]
