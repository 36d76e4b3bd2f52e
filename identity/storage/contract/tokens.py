"""What is demanded of the token store."""

from dataclasses import replace
from datetime import datetime, timedelta

import pytest

from identity.domain.applications import Application
from identity.domain.organizations import Organization
from identity.domain.projects import Project
from identity.domain.tokens import AccessToken, RefreshToken, TokenFamily
from identity.domain.users import HumanUser, ServiceUser, Subject, TokenFormat
from identity.storage.contract.base import ContractBase, InTransaction, Reading, Save
from identity.storage.contract.factories import (
    a_code,
    a_digest,
    a_family,
    a_human_user,
    a_key,
    a_refresh_token,
    an_access_token,
    an_id,
)
from identity.storage.errors import AlreadyUsed, Duplicate, Missing

SECOND = timedelta(seconds=1)


class FamilyContract(ContractBase):
    """A family ties together what came from one authorization; once revoked it stays so."""

    def test_families_find_returns_what_was_started(
        self, save: Save, reading: Reading, human_user: HumanUser, application: Application, now: datetime
    ) -> None:
        family = a_family(
            human_user,
            application,
            scope=("openid", "b", "a"),
            session_id="session",
            offline=False,
            ends_at=now + timedelta(hours=1),
        )
        save(family)
        with reading() as storage:
            assert storage.tokens.find_family(family.id) == family
            assert storage.tokens.find_family(an_id()) is None

    def test_families_a_family_needs_its_user(self, in_transaction: InTransaction, application: Application) -> None:
        with pytest.raises(Missing), in_transaction() as storage:
            storage.tokens.start_family(a_family(None, application))

    def test_families_a_family_needs_its_client(self, in_transaction: InTransaction, human_user: HumanUser) -> None:
        with pytest.raises(Missing), in_transaction() as storage:
            storage.tokens.start_family(a_family(human_user, None))

    def test_families_a_revoked_family_keeps_its_moment(
        self, in_transaction: InTransaction, reading: Reading, family: TokenFamily, now: datetime
    ) -> None:
        for at in (now, now + SECOND):
            with in_transaction() as storage:
                storage.tokens.revoke_family(family.id, at)
        with reading() as storage:
            assert storage.tokens.find_family(family.id) == replace(family, revoked_at=now)

    def test_families_revoking_a_family_kills_all_its_tokens_and_no_other(
        self,
        save: Save,
        in_transaction: InTransaction,
        reading: Reading,
        human_user: HumanUser,
        application: Application,
        family: TokenFamily,
        now: datetime,
    ) -> None:
        other = a_family(human_user, application)
        access, refresh = an_access_token(human_user, application, family), a_refresh_token(family)
        other_access, other_refresh = an_access_token(human_user, application, other), a_refresh_token(other)
        save(other, access, refresh, other_access, other_refresh)
        with in_transaction() as storage:
            storage.tokens.revoke_family(family.id, now)
        with reading() as storage:
            issued, other_issued = (
                storage.tokens.find_issued(access.digest),
                storage.tokens.find_issued(other_access.digest),
            )
        assert issued is not None
        assert not issued.live(now)
        assert other_issued is not None
        assert other_issued.live(now)
        with pytest.raises(Missing), in_transaction() as storage:
            storage.tokens.rotate(refresh.digest, a_refresh_token(family), now)
        with in_transaction() as storage:
            storage.tokens.rotate(other_refresh.digest, a_refresh_token(other), now)

    def test_families_tokens_added_to_a_revoked_family_are_dead(
        self,
        save: Save,
        in_transaction: InTransaction,
        reading: Reading,
        human_user: HumanUser,
        application: Application,
        family: TokenFamily,
        now: datetime,
    ) -> None:
        with in_transaction() as storage:
            storage.tokens.revoke_family(family.id, now)
        access, refresh = an_access_token(human_user, application, family), a_refresh_token(family)
        save(access, refresh)
        with reading() as storage:
            issued = storage.tokens.find_issued(access.digest)
        assert issued is not None
        assert not issued.live(now)
        with pytest.raises(Missing), in_transaction() as storage:
            storage.tokens.rotate(refresh.digest, a_refresh_token(family), now)

    def test_families_purge_deletes_families_that_ended_before_with_all_that_is_theirs(
        self,
        save: Save,
        in_transaction: InTransaction,
        reading: Reading,
        human_user: HumanUser,
        application: Application,
        now: datetime,
    ) -> None:
        ended, ending = (
            a_family(human_user, application, ends_at=now - SECOND),
            a_family(human_user, application, ends_at=now),
        )
        code, refresh = a_code(ended), a_refresh_token(ended)
        access, kept_access = (
            an_access_token(human_user, application, ended),
            an_access_token(human_user, application, ending),
        )
        kept_code, kept_refresh = a_code(ending), a_refresh_token(ending)
        save(ended, ending, code, refresh, access, kept_access, kept_code, kept_refresh)
        with in_transaction() as storage:
            assert storage.tokens.purge_families(now, 10) == 1
        with reading() as storage:
            assert storage.tokens.find_family(ended.id) is None
            assert storage.tokens.find_refresh(refresh.digest) is None
            assert storage.tokens.find_access(access.digest) is None
            assert storage.tokens.find_family(ending.id) == ending
            assert storage.tokens.find_refresh(kept_refresh.digest) == kept_refresh
            assert storage.tokens.find_access(kept_access.digest) == kept_access
        with pytest.raises(Missing), in_transaction() as storage:
            storage.authorization_codes.redeem(code.digest, client_id=code.client_id, at=now)
        with in_transaction() as storage:
            storage.authorization_codes.redeem(kept_code.digest, client_id=kept_code.client_id, at=now)

    def test_families_purge_of_families_deletes_no_more_than_the_limit(
        self,
        save: Save,
        in_transaction: InTransaction,
        human_user: HumanUser,
        application: Application,
        now: datetime,
    ) -> None:
        families = [a_family(human_user, application, ends_at=now) for _ in range(5)]
        save(*families, *(a_refresh_token(family) for family in families))
        counts = []
        for _ in range(4):
            with in_transaction() as storage:
                counts.append(storage.tokens.purge_families(now + SECOND, 2))
        assert counts == [2, 2, 1, 0]


class AccessTokenContract(ContractBase):
    """An access token is found by its digest, with all that decides whether it is live; revoked stays revoked."""

    @pytest.fixture
    def token(self, save: Save, human_user: HumanUser, application: Application, family: TokenFamily) -> AccessToken:
        """A stored token of ``human_user`` for ``application``."""
        token = an_access_token(human_user, application, family)
        save(token)
        return token

    def test_access_tokens_find_returns_what_was_added(
        self,
        save: Save,
        reading: Reading,
        service_user: ServiceUser,
        human_user: HumanUser,
        application: Application,
        family: TokenFamily,
    ) -> None:
        key = a_key(service_user)
        save(key)
        token = an_access_token(
            human_user,
            application,
            family,
            digest=bytes(range(32)),
            format=TokenFormat.JWT,
            scope=("openid", "z", "a"),
            audience=("b", "a", "https://identity.example"),
            key_id=key.id,
            session_id="session",
        )
        save(token)
        with reading() as storage:
            assert storage.tokens.find_access(token.digest) == token

    def test_access_tokens_find_of_an_unknown_digest(self, reading: Reading, token: AccessToken) -> None:
        with reading() as storage:
            assert storage.tokens.find_access(a_digest()) is None
            assert storage.tokens.find_issued(a_digest()) is None
            assert storage.tokens.find_access(token.digest[:-1]) is None
            assert storage.tokens.find_refresh(token.digest) is None, "an access token is no refresh token"

    def test_access_tokens_a_taken_digest_is_refused(
        self, in_transaction: InTransaction, reading: Reading, token: AccessToken, service_user: ServiceUser
    ) -> None:
        with pytest.raises(Duplicate), in_transaction() as storage:
            storage.tokens.add_access(an_access_token(service_user, digest=token.digest))
        with reading() as storage:
            assert storage.tokens.find_access(token.digest) == token

    def test_access_tokens_find_issued_returns_everything_around_the_token(
        self,
        reading: Reading,
        token: AccessToken,
        human_user: HumanUser,
        application: Application,
        project: Project,
        organization: Organization,
        now: datetime,
    ) -> None:
        with reading() as storage:
            issued = storage.tokens.find_issued(token.digest)
        assert issued is not None
        assert issued.token == token
        assert issued.subject == Subject(human_user, organization)
        assert issued.client is not None
        assert issued.client.application == application
        assert issued.client.project == project
        assert issued.client.organization == organization
        assert not issued.family_revoked
        assert issued.live(now)

    def test_access_tokens_find_issued_knows_the_client_s_organization_from_the_user_s(
        self,
        save: Save,
        reading: Reading,
        application: Application,
        organization: Organization,
        other_organization: Organization,
    ) -> None:
        stranger = a_human_user(other_organization)
        token = an_access_token(stranger, application)
        save(stranger, token)
        with reading() as storage:
            issued = storage.tokens.find_issued(token.digest)
        assert issued is not None
        assert issued.subject == Subject(stranger, other_organization)
        assert issued.client is not None
        assert issued.client.organization == organization

    def test_access_tokens_find_issued_of_a_service_user(
        self, save: Save, reading: Reading, service_user: ServiceUser, organization: Organization, now: datetime
    ) -> None:
        token = an_access_token(service_user)
        save(token)
        with reading() as storage:
            issued = storage.tokens.find_issued(token.digest)
        assert issued is not None
        assert (issued.subject, issued.client) == (Subject(service_user, organization), None)
        assert issued.live(now)

    def test_access_tokens_find_issued_of_an_application_for_itself(
        self, save: Save, reading: Reading, application: Application, now: datetime
    ) -> None:
        token = an_access_token(None, application)
        save(token)
        with reading() as storage:
            issued = storage.tokens.find_issued(token.digest)
        assert issued is not None
        assert issued.subject is None
        assert issued.client is not None
        assert issued.client.application == application
        assert issued.live(now)

    @pytest.mark.parametrize("member", ["user", "application", "project", "organization"])
    def test_access_tokens_a_token_is_dead_while_a_member_is_deactivated(
        self,
        in_transaction: InTransaction,
        reading: Reading,
        token: AccessToken,
        human_user: HumanUser,
        application: Application,
        project: Project,
        organization: Organization,
        now: datetime,
        member: str,
    ) -> None:
        with in_transaction() as storage:
            if member == "user":
                storage.users.update(replace(human_user, active=False, version=2))
            elif member == "application":
                storage.applications.update(replace(application, active=False, version=2))
            elif member == "project":
                storage.projects.update(replace(project, active=False, version=2))
            else:
                storage.organizations.update(replace(organization, active=False, version=2))
        with reading() as storage:
            issued = storage.tokens.find_issued(token.digest)
        assert issued is not None
        assert not issued.live(now), f"the {member} is deactivated"

    def test_access_tokens_a_revoked_token_keeps_its_moment(
        self, in_transaction: InTransaction, reading: Reading, token: AccessToken, now: datetime
    ) -> None:
        for at in (now, now + SECOND):
            with in_transaction() as storage:
                storage.tokens.revoke_access(token.digest, at)
        with reading() as storage:
            assert storage.tokens.find_access(token.digest) == replace(token, revoked_at=now)
            issued = storage.tokens.find_issued(token.digest)
        assert issued is not None
        assert not issued.live(now)

    def test_access_tokens_revoking_a_token_leaves_all_else_alone(
        self,
        save: Save,
        in_transaction: InTransaction,
        reading: Reading,
        token: AccessToken,
        human_user: HumanUser,
        application: Application,
        family: TokenFamily,
        now: datetime,
    ) -> None:
        other = an_access_token(human_user, application, family)
        save(other)
        with in_transaction() as storage:
            storage.tokens.revoke_access(token.digest, now)
        with reading() as storage:
            assert storage.tokens.find_access(other.digest) == other
            assert storage.tokens.find_family(family.id) == family

    def test_access_tokens_revoking_an_unknown_token_does_nothing(
        self, in_transaction: InTransaction, now: datetime
    ) -> None:
        with in_transaction() as storage:
            storage.tokens.revoke_access(a_digest(), now)

    def test_access_tokens_are_of_things_that_exist(
        self, in_transaction: InTransaction, service_user: ServiceUser
    ) -> None:
        token = an_access_token(service_user)
        for orphan in (
            replace(token, user_id=an_id()),
            replace(token, key_id=an_id()),
            replace(token, application_id=an_id()),
            replace(token, family_id=an_id()),
        ):
            with pytest.raises(Missing), in_transaction() as storage:
                storage.tokens.add_access(orphan)

    def test_access_tokens_revoke_access_of_session(
        self,
        save: Save,
        in_transaction: InTransaction,
        reading: Reading,
        human_user: HumanUser,
        application: Application,
        family: TokenFamily,
        now: datetime,
    ) -> None:
        live = [an_access_token(human_user, application, family, session_id="session") for _ in range(2)]
        revoked = an_access_token(human_user, application, session_id="session", revoked_at=now - SECOND)
        others = [an_access_token(human_user, application, session_id="other"), an_access_token(human_user)]
        save(*live, revoked, *others)
        with in_transaction() as storage:
            assert storage.tokens.revoke_access_of_session("session", now) == 2
            assert storage.tokens.revoke_access_of_session("session", now) == 0
            assert storage.tokens.revoke_access_of_session("nobody", now) == 0
        with reading() as storage:
            for token in live:
                assert storage.tokens.find_access(token.digest) == replace(token, revoked_at=now)
            for token in (revoked, *others):
                assert storage.tokens.find_access(token.digest) == token
            assert storage.tokens.find_family(family.id) == family, "families outlive the session"

    def test_access_tokens_revoke_of_user(
        self,
        save: Save,
        in_transaction: InTransaction,
        reading: Reading,
        human_user: HumanUser,
        service_user: ServiceUser,
        application: Application,
        family: TokenFamily,
        now: datetime,
    ) -> None:
        earlier = a_family(human_user, application, revoked_at=now - SECOND)
        foreign = a_family(service_user, application)
        live = [an_access_token(human_user, application, family), an_access_token(human_user)]
        revoked = an_access_token(human_user, application, revoked_at=now - SECOND)
        others = [an_access_token(service_user), an_access_token(None, application)]
        refresh = a_refresh_token(family)
        save(earlier, foreign, *live, revoked, *others, refresh)
        with in_transaction() as storage:
            assert storage.tokens.revoke_of_user(human_user.id, now) == 2
        with in_transaction() as storage:
            assert storage.tokens.revoke_of_user(human_user.id, now + SECOND) == 0
            assert storage.tokens.revoke_of_user(an_id(), now) == 0
        with reading() as storage:
            for token in live:
                found = storage.tokens.find_access(token.digest)
                assert found == replace(token, revoked_at=now)
            for token in (revoked, *others):
                assert storage.tokens.find_access(token.digest) == token
            assert storage.tokens.find_family(family.id) == replace(family, revoked_at=now)
            assert storage.tokens.find_family(earlier.id) == earlier, "a revoked family keeps its moment"
            assert storage.tokens.find_family(foreign.id) == foreign
        with pytest.raises(Missing), in_transaction() as storage:
            storage.tokens.rotate(refresh.digest, a_refresh_token(family), now)

    def test_access_tokens_that_expired_are_not_counted_as_revoked(
        self, save: Save, in_aborted: InTransaction, service_user: ServiceUser, now: datetime
    ) -> None:
        expired = an_access_token(service_user, session_id="session", expires_at=now)
        live = an_access_token(service_user, session_id="session", expires_at=now + SECOND)
        save(expired, live)
        for revoke, argument in (
            ("revoke_access_of_session", "session"),
            ("revoke_of_user", service_user.id),
        ):
            with in_aborted() as storage:
                assert getattr(storage.tokens, revoke)(argument, now) == 1, revoke

    def test_access_tokens_purge_deletes_what_expired_before(
        self, save: Save, in_transaction: InTransaction, reading: Reading, service_user: ServiceUser, now: datetime
    ) -> None:
        expired, expiring, live = (
            an_access_token(service_user, expires_at=moment) for moment in (now - SECOND, now, now + SECOND)
        )
        save(expired, expiring, live)
        with in_transaction() as storage:
            assert storage.tokens.purge_access(now, 10) == 1
        with reading() as storage:
            assert storage.tokens.find_access(expired.digest) is None
            assert storage.tokens.find_access(expiring.digest) == expiring
            assert storage.tokens.find_access(live.digest) == live

    def test_access_tokens_purge_deletes_no_more_than_the_limit(
        self, save: Save, in_transaction: InTransaction, service_user: ServiceUser, now: datetime
    ) -> None:
        save(*(an_access_token(service_user) for _ in range(5)))
        later = now + timedelta(days=1)
        counts = []
        for _ in range(4):
            with in_transaction() as storage:
                counts.append(storage.tokens.purge_access(later, 2))
        assert counts == [2, 2, 1, 0]


class RefreshTokenContract(ContractBase):
    """A refresh token is rotated once while it is live; a replay is told from a mere unknown."""

    @pytest.fixture
    def refresh(self, save: Save, family: TokenFamily) -> RefreshToken:
        """A stored, live refresh token of ``family``."""
        token = a_refresh_token(family)
        save(token)
        return token

    def test_refresh_tokens_find_returns_what_was_added(
        self, save: Save, reading: Reading, family: TokenFamily
    ) -> None:
        token = a_refresh_token(
            family,
            digest=bytes(range(100, 132)),
            scope=("openid", "z", "a"),
            session_id="session",
            nonce="nönce",
            predecessor_id=an_id(),
        )
        save(token)
        with reading() as storage:
            assert storage.tokens.find_refresh(token.digest) == token
            assert storage.tokens.find_refresh(a_digest()) is None
            assert storage.tokens.find_access(token.digest) is None, "a refresh token is no access token"

    def test_refresh_tokens_a_taken_digest_is_refused(
        self, in_transaction: InTransaction, refresh: RefreshToken, family: TokenFamily
    ) -> None:
        with pytest.raises(Duplicate), in_transaction() as storage:
            storage.tokens.add_refresh(a_refresh_token(family, digest=refresh.digest))

    def test_refresh_tokens_a_refresh_token_needs_its_family(
        self, in_transaction: InTransaction, human_user: HumanUser, application: Application
    ) -> None:
        with pytest.raises(Missing), in_transaction() as storage:
            storage.tokens.add_refresh(a_refresh_token(a_family(human_user, application)))

    def test_refresh_tokens_rotate_stores_the_successor_and_returns_the_old_one_as_it_was(
        self,
        in_transaction: InTransaction,
        reading: Reading,
        refresh: RefreshToken,
        family: TokenFamily,
        now: datetime,
    ) -> None:
        successor = a_refresh_token(family, predecessor_id=refresh.id, issued_at=now + SECOND)
        with in_transaction() as storage:
            assert storage.tokens.rotate(refresh.digest, successor, now + SECOND) == refresh
        with reading() as storage:
            assert storage.tokens.find_refresh(refresh.digest) == replace(refresh, rotated_at=now + SECOND)
            assert storage.tokens.find_refresh(successor.digest) == successor

    def test_refresh_tokens_a_chain_can_be_rotated_on(
        self, in_transaction: InTransaction, refresh: RefreshToken, family: TokenFamily, now: datetime
    ) -> None:
        current = refresh
        for _ in range(3):
            successor = a_refresh_token(family, predecessor_id=current.id)
            with in_transaction() as storage:
                assert storage.tokens.rotate(current.digest, successor, now) == current
            current = successor

    def test_refresh_tokens_a_second_rotation_is_told_with_the_row_and_stores_nothing(
        self,
        in_transaction: InTransaction,
        reading: Reading,
        refresh: RefreshToken,
        family: TokenFamily,
        now: datetime,
    ) -> None:
        with in_transaction() as storage:
            storage.tokens.rotate(refresh.digest, a_refresh_token(family), now)
        second = a_refresh_token(family)
        with in_transaction() as storage:
            with pytest.raises(AlreadyUsed) as refusal:
                storage.tokens.rotate(refresh.digest, second, now + SECOND)
            assert refusal.value.value == replace(refresh, rotated_at=now), "the first rotation is the one that counts"
        with reading() as storage:
            assert storage.tokens.find_refresh(second.digest) is None

    def test_refresh_tokens_a_replay_is_told_even_after_the_token_expired(
        self, in_transaction: InTransaction, refresh: RefreshToken, family: TokenFamily, now: datetime
    ) -> None:
        with in_transaction() as storage:
            storage.tokens.rotate(refresh.digest, a_refresh_token(family), now)
        with pytest.raises(AlreadyUsed), in_transaction() as storage:
            storage.tokens.rotate(refresh.digest, a_refresh_token(family), refresh.expires_at + SECOND)

    def test_refresh_tokens_the_transaction_of_a_replay_can_go_on(
        self,
        in_transaction: InTransaction,
        reading: Reading,
        refresh: RefreshToken,
        family: TokenFamily,
        now: datetime,
    ) -> None:
        with in_transaction() as storage:
            storage.tokens.rotate(refresh.digest, a_refresh_token(family), now)
        with in_transaction() as storage:
            with pytest.raises(AlreadyUsed):
                storage.tokens.rotate(refresh.digest, a_refresh_token(family), now)
            storage.tokens.revoke_family(family.id, now)
        with reading() as storage:
            assert storage.tokens.find_family(family.id) == replace(family, revoked_at=now)

    def test_refresh_tokens_an_unknown_token_cannot_be_rotated(
        self, in_transaction: InTransaction, family: TokenFamily, now: datetime
    ) -> None:
        with pytest.raises(Missing), in_transaction() as storage:
            storage.tokens.rotate(a_digest(), a_refresh_token(family), now)

    def test_refresh_tokens_a_token_expires_to_the_second(
        self,
        save: Save,
        in_transaction: InTransaction,
        reading: Reading,
        refresh: RefreshToken,
        family: TokenFamily,
    ) -> None:
        other, successor = a_refresh_token(family), a_refresh_token(family)
        save(other)
        with in_transaction() as storage:
            storage.tokens.rotate(refresh.digest, a_refresh_token(family), refresh.expires_at - SECOND)
        with in_transaction() as storage, pytest.raises(Missing):
            storage.tokens.rotate(other.digest, successor, other.expires_at)
        with reading() as storage:
            assert storage.tokens.find_refresh(other.digest) == other
            assert storage.tokens.find_refresh(successor.digest) is None

    def test_refresh_tokens_a_revoked_token_cannot_be_rotated_and_keeps_its_moment(
        self,
        in_transaction: InTransaction,
        reading: Reading,
        refresh: RefreshToken,
        family: TokenFamily,
        now: datetime,
    ) -> None:
        for at in (now, now + SECOND):
            with in_transaction() as storage:
                storage.tokens.revoke_refresh(refresh.digest, at)
        successor = a_refresh_token(family)
        with in_transaction() as storage, pytest.raises(Missing):
            storage.tokens.rotate(refresh.digest, successor, now)
        with reading() as storage:
            assert storage.tokens.find_refresh(refresh.digest) == replace(refresh, revoked_at=now)
            assert storage.tokens.find_refresh(successor.digest) is None

    def test_refresh_tokens_revoking_a_token_leaves_the_family_alone(
        self,
        save: Save,
        in_transaction: InTransaction,
        reading: Reading,
        refresh: RefreshToken,
        family: TokenFamily,
        now: datetime,
    ) -> None:
        other = a_refresh_token(family)
        save(other)
        with in_transaction() as storage:
            storage.tokens.revoke_refresh(refresh.digest, now)
        with reading() as storage:
            assert storage.tokens.find_refresh(other.digest) == other
            assert storage.tokens.find_family(family.id) == family

    def test_refresh_tokens_revoking_an_unknown_token_does_nothing(
        self, in_transaction: InTransaction, now: datetime
    ) -> None:
        with in_transaction() as storage:
            storage.tokens.revoke_refresh(a_digest(), now)

    def test_refresh_tokens_a_token_of_a_revoked_family_cannot_be_rotated(
        self,
        in_transaction: InTransaction,
        reading: Reading,
        refresh: RefreshToken,
        family: TokenFamily,
        now: datetime,
    ) -> None:
        with in_transaction() as storage:
            storage.tokens.revoke_family(family.id, now)
        successor = a_refresh_token(family)
        with in_transaction() as storage, pytest.raises(Missing):
            storage.tokens.rotate(refresh.digest, successor, now)
        with reading() as storage:
            assert storage.tokens.find_refresh(successor.digest) is None


class TokenContract(FamilyContract, AccessTokenContract, RefreshTokenContract):
    """Families, access tokens and refresh tokens: revoked is for ever, used is once."""
