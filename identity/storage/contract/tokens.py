"""What is demanded of the token store."""

from dataclasses import replace
from datetime import timedelta

import pytest

from identity.domain.tokens import AccessToken
from identity.domain.users import Subject, TokenFormat
from identity.storage.contract.base import ContractBase, On, there
from identity.storage.contract.factories import (
    NOW,
    a_code,
    a_digest,
    a_family,
    a_human_user,
    a_key,
    a_refresh_token,
    a_service_user_secret,
    an_access_token,
    an_id,
)
from identity.storage.errors import Duplicate, Missing

SECOND = timedelta(seconds=1)


class FamilyContract(ContractBase):
    """A family ties together what came from one authorization; once revoked it stays so."""

    def test_families_find_returns_what_was_started(self, on: On) -> None:
        family = on.saved(
            a_family(
                on.human_user,
                on.application,
                scope=("openid", "b", "a"),
                session_id="session",
                offline=False,
                methods=("pwd", "otp"),
                userinfo_claims=("email", "name"),
                id_token_claims=("nickname",),
                ends_at=NOW + timedelta(hours=1),
            )
        )
        assert on.read.tokens.find_family(family.id) == family
        assert on.read.tokens.find_family(an_id()) is None

    def test_families_a_revoked_family_keeps_its_moment(self, on: On) -> None:
        for at in (NOW, NOW + SECOND):
            on.write.tokens.revoke_family(on.family.id, at)
        assert on.read.tokens.find_family(on.family.id) == replace(on.family, revoked_at=NOW)

    def test_families_revoking_a_family_kills_all_its_tokens_and_no_other(self, on: On) -> None:
        other = a_family(on.human_user, on.application)
        access, refresh = an_access_token(on.human_user, on.application, on.family), a_refresh_token(on.family)
        other_access, other_refresh = an_access_token(on.human_user, on.application, other), a_refresh_token(other)
        on.save(other, access, refresh, other_access, other_refresh)
        on.write.tokens.revoke_family(on.family.id, NOW)
        issued, other_issued = (
            on.read.tokens.find_issued(access.digest),
            on.read.tokens.find_issued(other_access.digest),
        )
        assert issued is not None
        assert not issued.live(NOW)
        assert other_issued is not None
        assert other_issued.live(NOW)
        with pytest.raises(Missing):
            on.write.tokens.rotate(refresh.digest, a_refresh_token(on.family), NOW)
        on.write.tokens.rotate(other_refresh.digest, a_refresh_token(other), NOW)

    def test_families_tokens_added_to_a_revoked_family_are_dead(self, on: On) -> None:
        on.write.tokens.revoke_family(on.family.id, NOW)
        access, refresh = an_access_token(on.human_user, on.application, on.family), a_refresh_token(on.family)
        on.save(access, refresh)
        issued = there(on.read.tokens.find_issued(access.digest))
        assert not issued.live(NOW)
        with pytest.raises(Missing):
            on.write.tokens.rotate(refresh.digest, a_refresh_token(on.family), NOW)

    def test_families_purge_deletes_families_that_ended_before_with_all_that_is_theirs(self, on: On) -> None:
        ended, ending = (
            a_family(on.human_user, on.application, ends_at=NOW - SECOND),
            a_family(on.human_user, on.application, ends_at=NOW),
        )
        code, refresh = a_code(ended), a_refresh_token(ended)
        access, kept_access = (
            an_access_token(on.human_user, on.application, ended),
            an_access_token(on.human_user, on.application, ending),
        )
        kept_code, kept_refresh = a_code(ending), a_refresh_token(ending)
        on.save(ended, ending, code, refresh, access, kept_access, kept_code, kept_refresh)
        assert on.write.tokens.purge_families(NOW, 10) == 1
        assert on.read.tokens.find_family(ended.id) is None
        assert on.read.tokens.find_refresh(refresh.digest) is None
        assert on.read.tokens.find_access(access.digest) is None
        assert on.read.tokens.find_family(ending.id) == ending
        assert on.read.tokens.find_refresh(kept_refresh.digest) == kept_refresh
        assert on.read.tokens.find_access(kept_access.digest) == kept_access
        with pytest.raises(Missing):
            on.write.tokens.redeem_code(code.digest, client_id=code.client_id, at=NOW)
        on.write.tokens.redeem_code(kept_code.digest, client_id=kept_code.client_id, at=NOW)


class AccessTokenContract(ContractBase):
    """An access token is found by its digest, with all that decides whether it is live; revoked stays revoked."""

    @pytest.fixture
    def token(self, on: On) -> AccessToken:
        """A stored token of ``human_user`` for ``application``."""
        return on.saved(an_access_token(on.human_user, on.application, on.family))

    def test_access_tokens_find_returns_what_was_added(self, on: On) -> None:
        key, secret = a_key(on.service_user), a_service_user_secret(on.service_user)
        on.save(key, secret)
        token = on.saved(
            an_access_token(
                on.human_user,
                on.application,
                on.family,
                digest=bytes(range(32)),
                format=TokenFormat.JWT,
                scope=("openid", "z", "a"),
                audience=("b", "a", "https://identity.example"),
                key_id=key.id,
                secret_id=secret.id,
                session_id="session",
                actors=("z", "a"),
            )
        )
        assert on.read.tokens.find_access(token.digest) == token

    def test_access_tokens_find_of_an_unknown_digest(self, on: On, token: AccessToken) -> None:
        assert on.read.tokens.find_access(a_digest()) is None
        assert on.read.tokens.find_issued(a_digest()) is None
        assert on.read.tokens.find_access(token.digest[:-1]) is None
        assert on.read.tokens.find_refresh(token.digest) is None, "an access token is no refresh token"

    def test_access_tokens_a_taken_digest_is_refused(self, on: On, token: AccessToken) -> None:
        with pytest.raises(Duplicate):
            on.write.tokens.add_access(an_access_token(on.service_user, digest=token.digest))
        assert on.read.tokens.find_access(token.digest) == token

    def test_access_tokens_find_issued_returns_everything_around_the_token(self, on: On, token: AccessToken) -> None:
        issued = there(on.read.tokens.find_issued(token.digest))
        assert issued.token == token
        assert issued.subject == Subject(on.human_user, on.organization)
        assert issued.client is not None
        assert issued.client.application == on.application
        assert issued.client.project == on.project
        assert issued.client.organization == on.organization
        assert not issued.family_revoked
        assert issued.live(NOW)

    def test_access_tokens_find_issued_knows_the_client_s_organization_from_the_user_s(self, on: On) -> None:
        stranger = a_human_user(on.other_organization)
        token = an_access_token(stranger, on.application)
        on.save(stranger, token)
        issued = there(on.read.tokens.find_issued(token.digest))
        assert issued.subject == Subject(stranger, on.other_organization)
        assert issued.client is not None
        assert issued.client.organization == on.organization

    def test_access_tokens_find_issued_of_a_service_user(self, on: On) -> None:
        token = on.saved(an_access_token(on.service_user))
        issued = there(on.read.tokens.find_issued(token.digest))
        assert (issued.subject, issued.client) == (Subject(on.service_user, on.organization), None)
        assert issued.live(NOW)

    def test_access_tokens_find_issued_of_an_application_for_itself(self, on: On) -> None:
        token = on.saved(an_access_token(None, on.application))
        issued = there(on.read.tokens.find_issued(token.digest))
        assert issued.subject is None
        assert issued.client is not None
        assert issued.client.application == on.application
        assert issued.live(NOW)

    @pytest.mark.parametrize("member", ["user", "application", "project", "organization"])
    def test_access_tokens_a_token_is_dead_while_a_member_is_deactivated(
        self, on: On, token: AccessToken, member: str
    ) -> None:
        human_user, application, project, organization = on.human_user, on.application, on.project, on.organization
        with on.writing() as storage:
            if member == "user":
                storage.users.update(replace(human_user, active=False, version=2))
            elif member == "application":
                storage.applications.update(replace(application, active=False, version=2))
            elif member == "project":
                storage.projects.update(replace(project, active=False, version=2))
            else:
                storage.organizations.update(replace(organization, active=False, version=2))
        issued = there(on.read.tokens.find_issued(token.digest))
        assert not issued.live(NOW), f"the {member} is deactivated"

    def test_access_tokens_a_token_is_dead_once_its_session_has_ended(self, on: On) -> None:
        token = an_access_token(on.human_user, on.application, on.family, session_id=on.session.id)
        others = [
            an_access_token(on.human_user, on.application, on.family, session_id=an_id()),
            an_access_token(on.human_user, on.application, on.family),
        ]
        on.save(token, *others)
        issued = there(on.read.tokens.find_issued(token.digest))
        assert not issued.session_ended
        assert issued.live(NOW)
        on.write.sessions.end(on.session.id, NOW)
        issued = there(on.read.tokens.find_issued(token.digest))
        other_issued = [on.read.tokens.find_issued(other.digest) for other in others]
        assert issued.session_ended
        assert not issued.family_revoked
        assert issued.token == token, "nothing is written to the token itself"
        assert not issued.live(NOW)
        assert all(other is not None and other.live(NOW) for other in other_issued)

    def test_access_tokens_a_session_that_was_purged_has_not_ended(self, on: On) -> None:
        token = on.saved(an_access_token(on.human_user, on.application, session_id=on.session.id))
        with on.writing() as storage:
            storage.sessions.end(on.session.id, NOW)
            assert storage.sessions.purge(on.session.ends_at + SECOND, 10) == 1
        issued = there(on.read.tokens.find_issued(token.digest))
        assert issued.token == token
        assert not issued.session_ended

    def test_access_tokens_a_revoked_token_keeps_its_moment(self, on: On, token: AccessToken) -> None:
        for at in (NOW, NOW + SECOND):
            on.write.tokens.revoke_access(token.digest, at)
        assert on.read.tokens.find_access(token.digest) == replace(token, revoked_at=NOW)
        issued = there(on.read.tokens.find_issued(token.digest))
        assert not issued.live(NOW)

    def test_access_tokens_revoking_a_token_leaves_all_else_alone(self, on: On, token: AccessToken) -> None:
        other = on.saved(an_access_token(on.human_user, on.application, on.family))
        on.write.tokens.revoke_access(token.digest, NOW)
        assert on.read.tokens.find_access(other.digest) == other
        assert on.read.tokens.find_family(on.family.id) == on.family

    def test_access_tokens_revoking_an_unknown_token_does_nothing(self, on: On) -> None:
        on.write.tokens.revoke_access(a_digest(), NOW)

    def test_access_tokens_are_of_things_that_exist(self, on: On) -> None:
        token = an_access_token(on.service_user)
        for orphan in (
            replace(token, user_id=an_id()),
            replace(token, key_id=an_id()),
            replace(token, secret_id=an_id()),
            replace(token, application_id=an_id()),
            replace(token, family_id=an_id()),
        ):
            with pytest.raises(Missing):
                on.write.tokens.add_access(orphan)

    def test_access_tokens_revoke_of_user(self, on: On) -> None:
        human_user = on.human_user
        earlier = a_family(human_user, on.application, revoked_at=NOW - SECOND)
        foreign = a_family(on.service_user, on.application)
        live = [an_access_token(human_user, on.application, on.family), an_access_token(human_user)]
        revoked = an_access_token(human_user, on.application, revoked_at=NOW - SECOND)
        others = [an_access_token(on.service_user), an_access_token(None, on.application)]
        refresh = a_refresh_token(on.family)
        on.save(earlier, foreign, *live, revoked, *others, refresh)
        assert on.write.tokens.revoke_of_user(human_user.id, NOW) == 2
        with on.writing() as storage:
            assert storage.tokens.revoke_of_user(human_user.id, NOW + SECOND) == 0
            assert storage.tokens.revoke_of_user(an_id(), NOW) == 0
        for token in live:
            found = on.read.tokens.find_access(token.digest)
            assert found == replace(token, revoked_at=NOW)
        for token in (revoked, *others):
            assert on.read.tokens.find_access(token.digest) == token
        assert on.read.tokens.find_family(on.family.id) == replace(on.family, revoked_at=NOW)
        assert on.read.tokens.find_family(earlier.id) == earlier, "a revoked family keeps its moment"
        assert on.read.tokens.find_family(foreign.id) == foreign
        with pytest.raises(Missing):
            on.write.tokens.rotate(refresh.digest, a_refresh_token(on.family), NOW)

    def test_access_tokens_that_expired_are_not_counted_as_revoked(self, on: On) -> None:
        on.save(
            an_access_token(on.service_user, expires_at=NOW), an_access_token(on.service_user, expires_at=NOW + SECOND)
        )
        with on.aborted() as storage:
            assert storage.tokens.revoke_of_user(on.service_user.id, NOW) == 1

    def test_access_tokens_purge_deletes_what_expired_before(self, on: On) -> None:
        expired, expiring, live = (
            an_access_token(on.service_user, expires_at=moment) for moment in (NOW - SECOND, NOW, NOW + SECOND)
        )
        on.save(expired, expiring, live)
        assert on.write.tokens.purge_access(NOW, 10) == 1
        assert on.read.tokens.find_access(expired.digest) is None
        assert on.read.tokens.find_access(expiring.digest) == expiring
        assert on.read.tokens.find_access(live.digest) == live


class TokenContract(FamilyContract, AccessTokenContract):
    """Families and access tokens: revoked is for ever."""
