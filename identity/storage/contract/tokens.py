"""What is demanded of the token store."""

from dataclasses import replace
from datetime import datetime, timedelta
from functools import partial

import pytest

from identity.domain.applications import Application, Client
from identity.domain.organizations import Organization
from identity.domain.projects import Project
from identity.domain.sessions import Session
from identity.domain.tokens import AccessToken, Connection, PresentedRefreshToken, RefreshToken, TokenFamily
from identity.domain.users import HumanUser, ServiceUser, Subject, TokenFormat
from identity.storage.backend import Storage
from identity.storage.contract.base import ContractBase, InTransaction, Reading, Save
from identity.storage.contract.factories import (
    a_client_secret,
    a_code,
    a_digest,
    a_family,
    a_human_user,
    a_key,
    a_refresh_token,
    a_service_user_secret,
    an_access_token,
    an_application,
    an_id,
    an_organization,
)
from identity.storage.contract.racing import Race
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
            methods=("pwd", "otp"),
            userinfo_claims=("email", "name"),
            id_token_claims=("nickname",),
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
        key, secret = a_key(service_user), a_service_user_secret(service_user)
        save(key, secret)
        token = an_access_token(
            human_user,
            application,
            family,
            digest=bytes(range(32)),
            format=TokenFormat.JWT,
            scope=("openid", "z", "a"),
            audience=("b", "a", "https://identity.example"),
            key_id=key.id,
            secret_id=secret.id,
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

    def test_access_tokens_a_token_is_dead_once_its_session_has_ended(
        self,
        save: Save,
        in_transaction: InTransaction,
        reading: Reading,
        human_user: HumanUser,
        application: Application,
        family: TokenFamily,
        session: Session,
        now: datetime,
    ) -> None:
        token = an_access_token(human_user, application, family, session_id=session.id)
        others = [
            an_access_token(human_user, application, family, session_id=an_id()),
            an_access_token(human_user, application, family),
        ]
        save(token, *others)
        with reading() as storage:
            issued = storage.tokens.find_issued(token.digest)
        assert issued is not None
        assert not issued.session_ended
        assert issued.live(now)
        with in_transaction() as storage:
            storage.sessions.end(session.id, now)
        with reading() as storage:
            issued = storage.tokens.find_issued(token.digest)
            other_issued = [storage.tokens.find_issued(other.digest) for other in others]
        assert issued is not None
        assert issued.session_ended
        assert not issued.family_revoked
        assert issued.token == token, "nothing is written to the token itself"
        assert not issued.live(now)
        assert all(other is not None and other.live(now) for other in other_issued)

    def test_access_tokens_a_session_that_was_purged_has_not_ended(
        self,
        save: Save,
        in_transaction: InTransaction,
        reading: Reading,
        human_user: HumanUser,
        application: Application,
        session: Session,
        now: datetime,
    ) -> None:
        token = an_access_token(human_user, application, session_id=session.id)
        save(token)
        with in_transaction() as storage:
            storage.sessions.end(session.id, now)
            assert storage.sessions.purge(session.ends_at + SECOND, 10) == 1
        with reading() as storage:
            issued = storage.tokens.find_issued(token.digest)
        assert issued is not None
        assert issued.token == token
        assert not issued.session_ended

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
            replace(token, secret_id=an_id()),
            replace(token, application_id=an_id()),
            replace(token, family_id=an_id()),
        ):
            with pytest.raises(Missing), in_transaction() as storage:
                storage.tokens.add_access(orphan)

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
        save(an_access_token(service_user, expires_at=now), an_access_token(service_user, expires_at=now + SECOND))
        with in_aborted() as storage:
            assert storage.tokens.revoke_of_user(service_user.id, now) == 1

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

    def test_refresh_tokens_find_presented_returns_everything_around_the_token(
        self,
        save: Save,
        in_transaction: InTransaction,
        reading: Reading,
        family: TokenFamily,
        human_user: HumanUser,
        organization: Organization,
        session: Session,
        now: datetime,
    ) -> None:
        token = a_refresh_token(family, scope=("openid", "b"), session_id=session.id, nonce="nönce")
        rotated = a_refresh_token(family, rotated_at=now, revoked_at=now + SECOND)
        save(token, rotated)
        subject = Subject(human_user, organization)
        with reading() as storage:
            assert storage.tokens.find_presented(token.digest) == PresentedRefreshToken(token, family, subject)
            assert storage.tokens.find_presented(rotated.digest) == PresentedRefreshToken(rotated, family, subject)
            assert storage.tokens.find_presented(a_digest()) is None
        inactive = replace(human_user, active=False, version=2)
        with in_transaction() as storage:
            storage.tokens.revoke_family(family.id, now)
            storage.users.update(inactive)
        revoked = replace(family, revoked_at=now)
        with reading() as storage:
            assert storage.tokens.find_presented(token.digest) == PresentedRefreshToken(
                token, revoked, Subject(inactive, organization)
            )

    def test_refresh_tokens_find_presented_tells_that_the_session_has_ended_while_it_is_known(
        self,
        save: Save,
        in_transaction: InTransaction,
        reading: Reading,
        family: TokenFamily,
        session: Session,
        now: datetime,
    ) -> None:
        tokens = [a_refresh_token(family, session_id=session_id) for session_id in (session.id, None, an_id())]
        save(*tokens)
        with in_transaction() as storage:
            storage.sessions.end(session.id, now)
        with reading() as storage:
            found = [storage.tokens.find_presented(token.digest) for token in tokens]
        assert [each is not None and each.session_ended for each in found] == [True, False, False]
        with in_transaction() as storage:
            assert storage.sessions.purge(session.ends_at + SECOND, 10) == 1
        with reading() as storage:
            found = [storage.tokens.find_presented(token.digest) for token in tokens]
        assert [each is not None and each.session_ended for each in found] == [False, False, False]
        assert [each and each.token for each in found] == tokens

    def test_refresh_tokens_the_end_of_all_rotation_is_a_token_s_end(
        self, save: Save, in_transaction: InTransaction, family: TokenFamily, now: datetime
    ) -> None:
        token = a_refresh_token(family, expires_at=now + 2 * SECOND, ends_at=now + SECOND)
        save(token)
        with in_transaction() as storage, pytest.raises(Missing):
            storage.tokens.rotate(token.digest, a_refresh_token(family), now + SECOND)
        with in_transaction() as storage:
            storage.tokens.rotate(token.digest, a_refresh_token(family), now)

    def test_refresh_tokens_a_successor_is_replaced_by_another(
        self,
        in_transaction: InTransaction,
        reading: Reading,
        refresh: RefreshToken,
        family: TokenFamily,
        now: datetime,
    ) -> None:
        first, second, third = (a_refresh_token(family, predecessor_id=refresh.id) for _ in range(3))
        with in_transaction() as storage:
            storage.tokens.rotate(refresh.digest, first, now)
        rotated = replace(refresh, rotated_at=now)
        for index, successor in enumerate((second, third), 1):
            with in_transaction() as storage:
                assert storage.tokens.replace_successor(rotated, successor, now + index * SECOND)
        with reading() as storage:
            assert storage.tokens.find_refresh(first.digest) == replace(first, revoked_at=now + SECOND)
            assert storage.tokens.find_refresh(second.digest) == replace(second, revoked_at=now + 2 * SECOND)
            assert storage.tokens.find_refresh(third.digest) == third
            assert storage.tokens.find_refresh(refresh.digest) == rotated
        with in_transaction() as storage:
            storage.tokens.rotate(third.digest, a_refresh_token(family, predecessor_id=third.id), now)

    @pytest.mark.parametrize("reason", ["used", "revoked", "family", "never rotated"])
    def test_refresh_tokens_a_successor_that_is_not_live_is_not_replaced(
        self,
        in_transaction: InTransaction,
        reading: Reading,
        refresh: RefreshToken,
        family: TokenFamily,
        now: datetime,
        reason: str,
    ) -> None:
        successor, other = (a_refresh_token(family, predecessor_id=refresh.id) for _ in range(2))
        with in_transaction() as storage:
            if reason != "never rotated":
                storage.tokens.rotate(refresh.digest, successor, now)
            if reason == "used":
                # The successor of the successor is live: it is not the one that is asked for.
                storage.tokens.rotate(successor.digest, a_refresh_token(family, predecessor_id=successor.id), now)
            elif reason == "revoked":
                storage.tokens.revoke_refresh(successor.digest, now)
            elif reason == "family":
                storage.tokens.revoke_family(family.id, now)
        with reading() as storage:
            before = storage.tokens.find_refresh(successor.digest)
        with in_transaction() as storage:
            assert not storage.tokens.replace_successor(replace(refresh, rotated_at=now), other, now + SECOND)
        with reading() as storage:
            assert storage.tokens.find_refresh(other.digest) is None
            assert storage.tokens.find_refresh(successor.digest) == before

    def test_refresh_tokens_replacing_a_successor_leaves_others_alone(
        self,
        save: Save,
        in_transaction: InTransaction,
        reading: Reading,
        refresh: RefreshToken,
        family: TokenFamily,
        human_user: HumanUser,
        application: Application,
        now: datetime,
    ) -> None:
        other_family = a_family(human_user, application)
        strangers = [
            a_refresh_token(family),
            a_refresh_token(family, predecessor_id=an_id()),
            a_refresh_token(other_family),
        ]
        save(other_family, *strangers)
        with in_transaction() as storage:
            storage.tokens.rotate(refresh.digest, a_refresh_token(family, predecessor_id=refresh.id), now)
            assert storage.tokens.replace_successor(refresh, a_refresh_token(family, predecessor_id=refresh.id), now)
        with reading() as storage:
            assert [storage.tokens.find_refresh(each.digest) for each in strangers] == strangers

    def test_refresh_tokens_races_one_of_many_successors_stays_live(
        self, save: Save, race: Race, reading: Reading, family: TokenFamily, now: datetime
    ) -> None:
        for times in (100, 24, 24):
            first = a_refresh_token(family, rotated_at=now)
            successors = [a_refresh_token(family, predecessor_id=first.id) for _ in range(times + 1)]
            save(first, successors[-1])
            outcomes = race(partial(replace_successor, predecessor=first, successors=successors, at=now), times)
            assert outcomes.errors == {}
            assert outcomes.values == [True] * times, "each puts its own in the place of the one before"
            with reading() as storage:
                stored = [storage.tokens.find_refresh(each.digest) for each in successors]
            assert all(each is not None for each in stored)
            assert [each is not None and each.revoked_at is None for each in stored].count(True) == 1

    def test_refresh_tokens_races_a_used_successor_is_not_replaced(
        self, save: Save, race: Race, reading: Reading, family: TokenFamily, now: datetime
    ) -> None:
        for _ in range(4):
            first = a_refresh_token(family, rotated_at=now)
            successors = [a_refresh_token(family, predecessor_id=first.id) for _ in range(25)]
            following = [a_refresh_token(family, predecessor_id=successors[-1].id) for _ in range(24)]
            save(first, successors[-1])
            attempt = partial(
                rotate_or_replace_successor, predecessor=first, successors=successors, following=following, at=now
            )
            outcomes = race(attempt, 24)
            assert set(outcomes.errors) <= {"AlreadyUsed", "Missing"}, outcomes.errors
            with reading() as storage:
                stored = [storage.tokens.find_refresh(each.digest) for each in (*successors, *following)]
            live = [each for each in stored if each and each.revoked_at is None and each.rotated_at is None]
            assert len(live) == 1, "there is one live chain"


class ConnectionContract(ContractBase):
    """A person sees what applications hold, and can take it away from one of them."""

    def test_connections_are_what_each_application_holds_last_used_first(
        self,
        save: Save,
        reading: Reading,
        human_user: HumanUser,
        application: Application,
        project: Project,
        organization: Organization,
        now: datetime,
    ) -> None:
        other = an_application(project, name="Other", active=False)
        online = a_family(
            human_user, application, scope=("openid", "email"), offline=False, started_at=now - 3 * SECOND
        )
        offline = a_family(human_user, application, scope=("openid", "profile"), started_at=now - 2 * SECOND)
        later = a_family(human_user, other, scope=("openid",), offline=False, started_at=now - SECOND)
        save(other, online, offline, later)
        shop = Connection(
            client=Client(application, (), project, organization),
            scope=("openid", "email", "profile"),
            offline=True,
            since=now - 3 * SECOND,
            last_used_at=now - 2 * SECOND,
        )
        second = Connection(
            client=Client(other, (), project, organization),
            scope=("openid",),
            offline=False,
            since=now - SECOND,
            last_used_at=now - SECOND,
        )
        with reading() as storage:
            assert storage.tokens.connections_of_user(human_user.id, now) == (second, shop)
        first_token = a_refresh_token(online, issued_at=now, rotated_at=now + SECOND)
        save(first_token, a_refresh_token(online, issued_at=now + SECOND), a_refresh_token(offline, issued_at=now))
        with reading() as storage:
            assert storage.tokens.connections_of_user(human_user.id, now) == (
                replace(shop, last_used_at=now + SECOND),
                second,
            )
            assert storage.tokens.connections_of_user(an_id(), now) == ()

    def test_connections_do_not_show_secrets(
        self,
        in_transaction: InTransaction,
        reading: Reading,
        human_user: HumanUser,
        application: Application,
        family: TokenFamily,
        now: datetime,
    ) -> None:
        with in_transaction() as storage:
            storage.applications.add_secret(application.id, a_client_secret())
            storage.applications.add_secret(application.id, a_client_secret())
        with reading() as storage:
            (connection,) = storage.tokens.connections_of_user(human_user.id, now)
        assert connection.client.secrets == ()

    def test_connections_are_of_families_that_are_neither_revoked_nor_ended_nor_another_s(
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
        revoked = a_family(human_user, application, scope=("revoked",), revoked_at=now)
        ended = a_family(human_user, application, scope=("ended",), started_at=now - SECOND, ends_at=now)
        foreign = a_family(service_user, application, scope=("foreign",))
        save(revoked, ended, foreign, a_refresh_token(ended, issued_at=now + SECOND))
        with reading() as storage:
            (connection,) = storage.tokens.connections_of_user(human_user.id, now)
        assert connection.scope == family.scope
        assert connection.last_used_at == family.started_at
        with in_transaction() as storage:
            storage.tokens.revoke_family(family.id, now)
        with reading() as storage:
            assert storage.tokens.connections_of_user(human_user.id, now) == ()

    def test_connections_know_the_client_s_organization_from_the_user_s(
        self, save: Save, reading: Reading, application: Application, organization: Organization, now: datetime
    ) -> None:
        elsewhere = an_organization()
        stranger = a_human_user(elsewhere)
        save(elsewhere, stranger, a_family(stranger, application))
        with reading() as storage:
            (connection,) = storage.tokens.connections_of_user(stranger.id, now)
        assert connection.client.organization == organization

    def test_connections_can_be_taken_from_one_client(
        self,
        save: Save,
        in_transaction: InTransaction,
        reading: Reading,
        human_user: HumanUser,
        service_user: ServiceUser,
        application: Application,
        project: Project,
        family: TokenFamily,
        now: datetime,
    ) -> None:
        other = an_application(project)
        second = a_family(human_user, application, offline=False)
        earlier = a_family(human_user, application, revoked_at=now - SECOND)
        others = [a_family(human_user, other), a_family(service_user, application), earlier]
        access = an_access_token(human_user, application, second)
        save(other, second, *others, access)
        with in_transaction() as storage:
            assert storage.tokens.revoke_of_client(human_user.id, application.id, now) == 2
            assert storage.tokens.revoke_of_client(human_user.id, application.id, now + SECOND) == 0
            assert storage.tokens.revoke_of_client(human_user.id, an_id(), now) == 0
        with reading() as storage:
            for each in (family, second):
                assert storage.tokens.find_family(each.id) == replace(each, revoked_at=now)
            for each in others:
                assert storage.tokens.find_family(each.id) == each
            issued = storage.tokens.find_issued(access.digest)
        assert issued is not None
        assert not issued.live(now)


class TokenContract(FamilyContract, AccessTokenContract, RefreshTokenContract, ConnectionContract):
    """Families, access tokens and refresh tokens: revoked is for ever, used is once."""


# The attempts, which also run in other processes, so that they must be functions of the module.


def replace_successor(
    storage: Storage, number: int, *, predecessor: RefreshToken, successors: list[RefreshToken], at: datetime
) -> bool:
    """Put a successor of one's own in the place of the one before."""
    return storage.tokens.replace_successor(predecessor, successors[number], at)


def rotate_or_replace_successor(
    storage: Storage,
    number: int,
    *,
    predecessor: RefreshToken,
    successors: list[RefreshToken],
    following: list[RefreshToken],
    at: datetime,
) -> None:
    """Rotate the last of the successors to one of one's own or, every other time, replace it."""
    if number % 2:
        storage.tokens.rotate(successors[-1].digest, following[number], at)
    else:
        storage.tokens.replace_successor(predecessor, successors[number], at)
