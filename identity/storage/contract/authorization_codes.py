"""What is demanded of the authorization code store."""

from dataclasses import replace
from datetime import datetime, timedelta

import pytest

from identity.domain.applications import Application
from identity.domain.authorization_codes import AuthorizationCode, PresentedCode
from identity.domain.organizations import Organization
from identity.domain.sessions import Session
from identity.domain.tokens import TokenFamily
from identity.domain.users import HumanUser, Subject
from identity.storage.contract.base import ContractBase, InTransaction, Reading, Save
from identity.storage.contract.factories import a_code, a_digest, a_family, an_id
from identity.storage.errors import AlreadyUsed, Duplicate, Missing

SECOND = timedelta(seconds=1)


class AuthorizationCodeContract(ContractBase):
    """A code is redeemed once, by its own client, before it expires; a replay is told from a mere unknown."""

    @pytest.fixture
    def code(self, save: Save, family: TokenFamily) -> AuthorizationCode:
        """A stored, unredeemed code of ``family``."""
        code = a_code(family)
        save(code)
        return code

    def test_codes_redeem_returns_what_was_added(
        self, save: Save, in_transaction: InTransaction, family: TokenFamily, now: datetime
    ) -> None:
        code = a_code(
            family,
            digest=bytes(range(224, 256)),
            redirect_uri="https://shop.example/rück?x=1",
            scope=("openid", "urn:service:iam:org:project:id:1:aud", "profile"),
            session_id="session",
            nonce="nönce",
            code_challenge="E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM",
        )
        save(code)
        with in_transaction() as storage:
            redeemed = storage.authorization_codes.redeem(code.digest, client_id=code.client_id, at=now)
        assert replace(redeemed, redeemed_at=None) == code

    def test_codes_find_returns_everything_around_the_code(
        self,
        save: Save,
        reading: Reading,
        family: TokenFamily,
        human_user: HumanUser,
        organization: Organization,
        session: Session,
        now: datetime,
    ) -> None:
        code = a_code(family, scope=("openid", "b", "a"), session_id=session.id, nonce="nönce", code_challenge="E9")
        used, expired = a_code(family, redeemed_at=now), a_code(family, expires_at=now - SECOND)
        save(code, used, expired)
        subject = Subject(human_user, organization)
        with reading() as storage:
            for stored in (code, used, expired):
                assert storage.authorization_codes.find(stored.digest) == PresentedCode(stored, family, subject)
            assert storage.authorization_codes.find(a_digest()) is None

    def test_codes_looking_redeems_nothing(
        self, in_transaction: InTransaction, code: AuthorizationCode, now: datetime
    ) -> None:
        with in_transaction() as storage:
            storage.authorization_codes.find(code.digest)
            storage.authorization_codes.redeem(code.digest, client_id=code.client_id, at=now)
            found = storage.authorization_codes.find(code.digest)
        assert found is not None
        assert found.code == replace(code, redeemed_at=now)

    def test_codes_find_tells_that_the_family_is_revoked(
        self, in_transaction: InTransaction, reading: Reading, code: AuthorizationCode, now: datetime
    ) -> None:
        with in_transaction() as storage:
            storage.tokens.revoke_family(code.family_id, now)
        with reading() as storage:
            found = storage.authorization_codes.find(code.digest)
        assert found is not None
        assert (found.family.revoked_at, found.session_ended) == (now, False)

    def test_codes_find_tells_that_the_session_has_ended_while_it_is_known(
        self,
        save: Save,
        in_transaction: InTransaction,
        reading: Reading,
        family: TokenFamily,
        session: Session,
        now: datetime,
    ) -> None:
        codes = [a_code(family, session_id=session_id) for session_id in (session.id, None, an_id())]
        save(*codes)
        with in_transaction() as storage:
            storage.sessions.end(session.id, now)
        with reading() as storage:
            found = [storage.authorization_codes.find(code.digest) for code in codes]
        assert [each is not None and each.session_ended for each in found] == [True, False, False]
        assert not any(each is not None and each.family.revoked_at for each in found)
        with in_transaction() as storage:
            assert storage.sessions.purge(session.ends_at + SECOND, 10) == 1
        with reading() as storage:
            found = [storage.authorization_codes.find(code.digest) for code in codes]
        assert [each is not None and each.session_ended for each in found] == [False, False, False]
        assert [each and each.code for each in found] == codes

    def test_codes_find_shows_who_is_deactivated(
        self, in_transaction: InTransaction, reading: Reading, code: AuthorizationCode, organization: Organization
    ) -> None:
        with in_transaction() as storage:
            storage.organizations.update(replace(organization, active=False, version=2))
        with reading() as storage:
            found = storage.authorization_codes.find(code.digest)
        assert found is not None
        assert found.subject is not None
        assert not found.subject.active

    def test_codes_a_taken_digest_is_refused(
        self, in_transaction: InTransaction, code: AuthorizationCode, family: TokenFamily
    ) -> None:
        with pytest.raises(Duplicate), in_transaction() as storage:
            storage.authorization_codes.add(a_code(family, digest=code.digest))

    def test_codes_a_code_needs_its_family(
        self, in_transaction: InTransaction, human_user: HumanUser, application: Application
    ) -> None:
        with pytest.raises(Missing), in_transaction() as storage:
            storage.authorization_codes.add(a_code(a_family(human_user, application)))

    def test_codes_an_unknown_code(self, in_transaction: InTransaction, code: AuthorizationCode, now: datetime) -> None:
        with pytest.raises(Missing), in_transaction() as storage:
            storage.authorization_codes.redeem(a_digest(), client_id=code.client_id, at=now)

    def test_codes_a_second_redemption_is_told_with_the_code(
        self, in_transaction: InTransaction, code: AuthorizationCode, now: datetime
    ) -> None:
        with in_transaction() as storage:
            storage.authorization_codes.redeem(code.digest, client_id=code.client_id, at=now)
        for later in (now + SECOND, now + 2 * SECOND):
            with pytest.raises(AlreadyUsed) as refusal, in_transaction() as storage:
                storage.authorization_codes.redeem(code.digest, client_id=code.client_id, at=later)
            assert refusal.value.value == replace(code, redeemed_at=now), "the first redemption is the one that counts"

    def test_codes_a_replay_is_told_even_after_the_code_expired(
        self, in_transaction: InTransaction, code: AuthorizationCode, now: datetime
    ) -> None:
        with in_transaction() as storage:
            storage.authorization_codes.redeem(code.digest, client_id=code.client_id, at=now)
        with pytest.raises(AlreadyUsed), in_transaction() as storage:
            storage.authorization_codes.redeem(
                code.digest, client_id=code.client_id, at=code.expires_at + timedelta(days=1)
            )

    def test_codes_the_transaction_of_a_replay_can_go_on(
        self,
        in_transaction: InTransaction,
        reading: Reading,
        code: AuthorizationCode,
        family: TokenFamily,
        now: datetime,
    ) -> None:
        with in_transaction() as storage:
            storage.authorization_codes.redeem(code.digest, client_id=code.client_id, at=now)
        with in_transaction() as storage:
            with pytest.raises(AlreadyUsed):
                storage.authorization_codes.redeem(code.digest, client_id=code.client_id, at=now)
            storage.tokens.revoke_family(family.id, now)
        with reading() as storage:
            assert storage.tokens.find_family(family.id) == replace(family, revoked_at=now)

    def test_codes_a_code_expires_to_the_second(
        self, save: Save, in_transaction: InTransaction, code: AuthorizationCode, family: TokenFamily
    ) -> None:
        other = a_code(family)
        save(other)
        with in_transaction() as storage:
            storage.authorization_codes.redeem(code.digest, client_id=code.client_id, at=code.expires_at - SECOND)
        with pytest.raises(Missing), in_transaction() as storage:
            storage.authorization_codes.redeem(other.digest, client_id=other.client_id, at=other.expires_at)

    def test_codes_another_client_neither_gets_nor_burns_the_code(
        self, in_transaction: InTransaction, code: AuthorizationCode, now: datetime
    ) -> None:
        with pytest.raises(Missing), in_transaction() as storage:
            storage.authorization_codes.redeem(code.digest, client_id="stranger", at=now)
        with in_transaction() as storage:
            with pytest.raises(Missing):
                storage.authorization_codes.redeem(code.digest, client_id="stranger", at=now)
            redeemed = storage.authorization_codes.redeem(code.digest, client_id=code.client_id, at=now)
        assert replace(redeemed, redeemed_at=None) == code

    def test_codes_another_client_is_not_told_of_a_redemption(
        self, in_transaction: InTransaction, code: AuthorizationCode, now: datetime
    ) -> None:
        with in_transaction() as storage:
            storage.authorization_codes.redeem(code.digest, client_id=code.client_id, at=now)
        with pytest.raises(Missing), in_transaction() as storage:
            storage.authorization_codes.redeem(code.digest, client_id="stranger", at=now)

    def test_codes_purge_deletes_unused_codes_that_expired_before(
        self, save: Save, in_transaction: InTransaction, family: TokenFamily, now: datetime
    ) -> None:
        expired = a_code(family, expires_at=now - SECOND)
        expiring, live = a_code(family, expires_at=now), a_code(family, expires_at=now + SECOND)
        save(expired, expiring, live)
        with in_transaction() as storage:
            assert storage.authorization_codes.purge(now, 10) == 1
        for kept in (expiring, live):
            with in_transaction() as storage:
                storage.authorization_codes.redeem(kept.digest, client_id=kept.client_id, at=now - SECOND)
        with pytest.raises(Missing), in_transaction() as storage:
            storage.authorization_codes.redeem(
                expired.digest, client_id=expired.client_id, at=now - timedelta(minutes=1)
            )

    def test_codes_purge_keeps_used_codes_until_their_family_has_ended(
        self, in_transaction: InTransaction, code: AuthorizationCode, family: TokenFamily, now: datetime
    ) -> None:
        with in_transaction() as storage:
            storage.authorization_codes.redeem(code.digest, client_id=code.client_id, at=now)
        with in_transaction() as storage:
            assert storage.authorization_codes.purge(family.ends_at, 10) == 0
        with pytest.raises(AlreadyUsed), in_transaction() as storage:
            storage.authorization_codes.redeem(code.digest, client_id=code.client_id, at=family.ends_at)
        with in_transaction() as storage:
            assert storage.authorization_codes.purge(family.ends_at + SECOND, 10) == 1
        with pytest.raises(Missing), in_transaction() as storage:
            storage.authorization_codes.redeem(code.digest, client_id=code.client_id, at=now)

    def test_codes_purge_deletes_no_more_than_the_limit(
        self, save: Save, in_transaction: InTransaction, family: TokenFamily, now: datetime
    ) -> None:
        save(*(a_code(family) for _ in range(5)))
        later = now + timedelta(days=1)
        counts = []
        for _ in range(4):
            with in_transaction() as storage:
                counts.append(storage.authorization_codes.purge(later, 2))
        assert counts == [2, 2, 1, 0]

    def test_codes_purge_keeps_to_the_limit_whatever_makes_codes_due(
        self, save: Save, in_transaction: InTransaction, family: TokenFamily, now: datetime
    ) -> None:
        used = [a_code(family, redeemed_at=now) for _ in range(3)]
        unused = [a_code(family) for _ in range(3)]
        save(*used, *unused)
        later = family.ends_at + SECOND
        counts = []
        for _ in range(6):
            with in_transaction() as storage:
                counts.append(storage.authorization_codes.purge(later, 2))
        assert max(counts) <= 2, counts
        assert sum(counts) == 6, counts
