"""What is demanded of the authorization code store."""

from dataclasses import replace
from datetime import timedelta

import pytest

from identity.domain.authorization_codes import AuthorizationCode, PresentedCode
from identity.domain.users import Subject
from identity.storage.contract.base import ContractBase, On, there
from identity.storage.contract.factories import NOW, a_code, a_digest, an_id
from identity.storage.errors import AlreadyUsed, Duplicate, Missing

SECOND = timedelta(seconds=1)


class AuthorizationCodeContract(ContractBase):
    """A code is redeemed once, by its own client, before it expires; a replay is told from a mere unknown."""

    @pytest.fixture
    def code(self, on: On) -> AuthorizationCode:
        """A stored, unredeemed code of ``family``."""
        return on.saved(a_code(on.family))

    def test_codes_redeem_returns_what_was_added(self, on: On) -> None:
        code = on.saved(
            a_code(
                on.family,
                digest=bytes(range(224, 256)),
                redirect_uri="https://shop.example/rück?x=1",
                scope=("openid", "urn:service:iam:org:project:id:1:aud", "profile"),
                session_id="session",
                nonce="nönce",
                code_challenge="E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM",
            )
        )
        redeemed = on.write.tokens.redeem_code(code.digest, client_id=code.client_id, at=NOW)
        assert replace(redeemed, redeemed_at=None) == code

    def test_codes_find_returns_everything_around_the_code(self, on: On) -> None:
        code = a_code(
            on.family, scope=("openid", "b", "a"), session_id=on.session.id, nonce="nönce", code_challenge="E9"
        )
        used, expired = a_code(on.family, redeemed_at=NOW), a_code(on.family, expires_at=NOW - SECOND)
        on.save(code, used, expired)
        subject = Subject(on.human_user, on.organization)
        for stored in (code, used, expired):
            assert on.read.tokens.find_code(stored.digest) == PresentedCode(stored, on.family, subject)
        assert on.read.tokens.find_code(a_digest()) is None

    def test_codes_looking_redeems_nothing(self, on: On, code: AuthorizationCode) -> None:
        with on.writing() as storage:
            storage.tokens.find_code(code.digest)
            storage.tokens.redeem_code(code.digest, client_id=code.client_id, at=NOW)
            found = storage.tokens.find_code(code.digest)
        assert found is not None
        assert found.code == replace(code, redeemed_at=NOW)

    def test_codes_find_tells_that_the_family_is_revoked(self, on: On, code: AuthorizationCode) -> None:
        on.write.tokens.revoke_family(code.family_id, NOW)
        found = there(on.read.tokens.find_code(code.digest))
        assert (found.family.revoked_at, found.session_ended) == (NOW, False)

    def test_codes_find_tells_that_the_session_has_ended_while_it_is_known(self, on: On) -> None:
        codes = [a_code(on.family, session_id=session_id) for session_id in (on.session.id, None, an_id())]
        on.save(*codes)
        on.write.sessions.end(on.session.id, NOW)
        found = [on.read.tokens.find_code(code.digest) for code in codes]
        assert [each is not None and each.session_ended for each in found] == [True, False, False]
        assert not any(each is not None and each.family.revoked_at for each in found)
        assert on.write.sessions.purge(on.session.ends_at + SECOND, 10) == 1
        found = [on.read.tokens.find_code(code.digest) for code in codes]
        assert [each is not None and each.session_ended for each in found] == [False, False, False]
        assert [each and each.code for each in found] == codes

    def test_codes_find_shows_who_is_deactivated(self, on: On, code: AuthorizationCode) -> None:
        on.write.organizations.update(replace(on.organization, active=False, version=2))
        found = there(on.read.tokens.find_code(code.digest))
        assert found.subject is not None
        assert not found.subject.active

    def test_codes_a_taken_digest_is_refused(self, on: On, code: AuthorizationCode) -> None:
        with pytest.raises(Duplicate):
            on.write.tokens.add_code(a_code(on.family, digest=code.digest))

    def test_codes_an_unknown_code(self, on: On, code: AuthorizationCode) -> None:
        with pytest.raises(Missing):
            on.write.tokens.redeem_code(a_digest(), client_id=code.client_id, at=NOW)

    def test_codes_a_second_redemption_is_told_with_the_code(self, on: On, code: AuthorizationCode) -> None:
        on.write.tokens.redeem_code(code.digest, client_id=code.client_id, at=NOW)
        for later in (NOW + SECOND, NOW + 2 * SECOND):
            with pytest.raises(AlreadyUsed) as refusal:
                on.write.tokens.redeem_code(code.digest, client_id=code.client_id, at=later)
            assert refusal.value.value == replace(code, redeemed_at=NOW), "the first redemption is the one that counts"

    def test_codes_a_replay_is_told_even_after_the_code_expired(self, on: On, code: AuthorizationCode) -> None:
        on.write.tokens.redeem_code(code.digest, client_id=code.client_id, at=NOW)
        with pytest.raises(AlreadyUsed):
            on.write.tokens.redeem_code(code.digest, client_id=code.client_id, at=code.expires_at + timedelta(days=1))

    def test_codes_the_transaction_of_a_replay_can_go_on(self, on: On, code: AuthorizationCode) -> None:
        family = on.family
        on.write.tokens.redeem_code(code.digest, client_id=code.client_id, at=NOW)
        with on.writing() as storage:
            with pytest.raises(AlreadyUsed):
                storage.tokens.redeem_code(code.digest, client_id=code.client_id, at=NOW)
            storage.tokens.revoke_family(family.id, NOW)
        assert on.read.tokens.find_family(family.id) == replace(family, revoked_at=NOW)

    def test_codes_a_code_expires_to_the_second(self, on: On, code: AuthorizationCode) -> None:
        other = on.saved(a_code(on.family))
        on.write.tokens.redeem_code(code.digest, client_id=code.client_id, at=code.expires_at - SECOND)
        with pytest.raises(Missing):
            on.write.tokens.redeem_code(other.digest, client_id=other.client_id, at=other.expires_at)

    def test_codes_another_client_neither_gets_nor_burns_the_code(self, on: On, code: AuthorizationCode) -> None:
        with pytest.raises(Missing):
            on.write.tokens.redeem_code(code.digest, client_id="stranger", at=NOW)
        with on.writing() as storage:
            with pytest.raises(Missing):
                storage.tokens.redeem_code(code.digest, client_id="stranger", at=NOW)
            redeemed = storage.tokens.redeem_code(code.digest, client_id=code.client_id, at=NOW)
        assert replace(redeemed, redeemed_at=None) == code

    def test_codes_another_client_is_not_told_of_a_redemption(self, on: On, code: AuthorizationCode) -> None:
        on.write.tokens.redeem_code(code.digest, client_id=code.client_id, at=NOW)
        with pytest.raises(Missing):
            on.write.tokens.redeem_code(code.digest, client_id="stranger", at=NOW)

    def test_codes_purge_deletes_unused_codes_that_expired_before(self, on: On) -> None:
        expired = a_code(on.family, expires_at=NOW - SECOND)
        expiring, live = a_code(on.family, expires_at=NOW), a_code(on.family, expires_at=NOW + SECOND)
        on.save(expired, expiring, live)
        assert on.write.tokens.purge_codes(NOW, 10) == 1
        for kept in (expiring, live):
            on.write.tokens.redeem_code(kept.digest, client_id=kept.client_id, at=NOW - SECOND)
        with pytest.raises(Missing):
            on.write.tokens.redeem_code(expired.digest, client_id=expired.client_id, at=NOW - timedelta(minutes=1))

    def test_codes_purge_keeps_used_codes_until_their_family_has_ended(self, on: On, code: AuthorizationCode) -> None:
        family = on.family
        on.write.tokens.redeem_code(code.digest, client_id=code.client_id, at=NOW)
        assert on.write.tokens.purge_codes(family.ends_at, 10) == 0
        with pytest.raises(AlreadyUsed):
            on.write.tokens.redeem_code(code.digest, client_id=code.client_id, at=family.ends_at)
        assert on.write.tokens.purge_codes(family.ends_at + SECOND, 10) == 1
        with pytest.raises(Missing):
            on.write.tokens.redeem_code(code.digest, client_id=code.client_id, at=NOW)

    def test_codes_purge_keeps_to_the_limit_whatever_makes_codes_due(self, on: On) -> None:
        used = [a_code(on.family, redeemed_at=NOW) for _ in range(3)]
        unused = [a_code(on.family) for _ in range(3)]
        on.save(*used, *unused)
        later = on.family.ends_at + SECOND
        counts = [on.write.tokens.purge_codes(later, 2) for _ in range(6)]
        assert max(counts) <= 2, counts
        assert sum(counts) == 6, counts
