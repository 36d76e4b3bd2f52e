"""What is demanded of the authorization code store."""

from contextlib import nullcontext
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from identity.domain.authorization_codes import AuthorizationCode, PresentedCode
from identity.domain.users import Subject
from identity.storage.contract.base import ContractBase, On
from identity.storage.contract.factories import (
    NOW,
    a_code,
    a_digest,
    a_family,
    a_refresh_token,
    an_access_token,
    an_application,
    an_id,
    an_organization,
)
from identity.storage.errors import AlreadyUsed, Missing
from identity.storage.stores.purges import Purged

SECOND = timedelta(seconds=1)


class AuthorizationCodeContract(ContractBase):
    """A code is redeemed once, by its own client, before it expires; a replay is told from a mere unknown."""

    @pytest.fixture
    def code(self, on: On) -> AuthorizationCode:
        """A stored, unredeemed code of ``family``."""
        return on.saved(a_code(on.family))

    def test_codes_find_returns_everything_around_the_code_and_redeems_nothing(self, on: On) -> None:
        code, used = a_code(on.family, session_id=on.session.id), a_code(on.family, redeemed_at=NOW)
        expired = a_code(on.family, expires_at=NOW - SECOND)
        on.save(code, used, expired)
        subject = Subject(on.human_user, on.organization)
        with on.writing() as storage:
            for stored in (code, used, expired):
                assert storage.tokens.find_code(stored.digest) == PresentedCode(stored, on.family, subject)
            assert storage.tokens.find_code(a_digest()) is None
            storage.tokens.redeem_code(code.digest, client_id=code.client_id, at=NOW)
        closed = replace(on.organization, active=False, version=2)
        with on.writing() as storage:
            storage.tokens.revoke_family(code.family_id, NOW)
            storage.organizations.update(closed)
        assert on.read.tokens.find_code(code.digest) == PresentedCode(
            replace(code, redeemed_at=NOW), replace(on.family, revoked_at=NOW), Subject(on.human_user, closed)
        )

    @pytest.mark.parametrize("last", [False, True])
    def test_codes_come_with_their_family_or_not_at_all(self, on: On, last: bool) -> None:
        family, stray = a_family(on.human_user, on.application), a_family(on.human_user, an_application())
        code, other, added = a_code(family), a_code(stray), an_organization()
        with on.writing() as storage:
            storage.tokens.start_family(family, code, last=last)
        assert on.left(family, code) == [family, code]
        with on.writing() as storage:
            with pytest.raises(Missing):
                storage.tokens.start_family(stray, other, last=last)
            storage.organizations.add(added)
        assert on.left(stray, other, added) == [added]

    def test_codes_find_tells_that_the_session_has_ended_while_it_is_known(self, on: On) -> None:
        codes = [a_code(on.family, session_id=session_id) for session_id in (on.session.id, None, an_id())]
        on.save(*codes)
        on.write.sessions.end(on.session.id, NOW)
        found = [on.read.tokens.find_code(code.digest) for code in codes]
        assert [each is not None and each.session_ended for each in found] == [True, False, False]
        assert not any(each is not None and each.family.revoked_at for each in found)
        assert on.purged(Purged.SESSIONS, on.session.ends_at + SECOND, 10) == 1
        found = [on.read.tokens.find_code(code.digest) for code in codes]
        assert [each is not None and each.session_ended for each in found] == [False, False, False]
        assert [each and each.code for each in found] == codes

    def test_codes_a_second_redemption_is_told_with_the_code_also_when_it_expired_and_the_transaction_goes_on(
        self, on: On, code: AuthorizationCode
    ) -> None:
        on.write.tokens.redeem_code(code.digest, client_id=code.client_id, at=NOW)
        with on.writing() as storage:
            for later in (NOW + SECOND, code.expires_at + timedelta(days=1)):
                with pytest.raises(AlreadyUsed) as refusal:
                    storage.tokens.redeem_code(code.digest, client_id=code.client_id, at=later)
                assert refusal.value.value == replace(code, redeemed_at=NOW), "the first one is the one that counts"
                for digest, client_id in ((code.digest, "stranger"), (a_digest(), code.client_id)):
                    with pytest.raises(Missing):
                        storage.tokens.redeem_code(digest, client_id=client_id, at=later)
            storage.tokens.revoke_family(code.family_id, NOW)
        assert on.stored(on.family) == replace(on.family, revoked_at=NOW)

    @pytest.mark.parametrize("last", [False, True])
    @pytest.mark.parametrize("brings", [(), ("refresh",), ("access",), ("refresh", "access")])
    def test_codes_redeeming_stores_what_the_code_brings(
        self, on: On, code: AuthorizationCode, brings: tuple[str, ...], last: bool
    ) -> None:
        for at, outcome in ((NOW, nullcontext()), (NOW, pytest.raises(AlreadyUsed))):
            new: dict[str, Any] = {
                "refresh": a_refresh_token(on.family),
                "access": an_access_token(on.human_user, on.application, on.family, digest=a_digest()),
            }
            new = {name: new[name] for name in brings}
            with on.writing() as storage, outcome:
                redeemed = storage.tokens.redeem_code(code.digest, client_id=code.client_id, at=at, last=last, **new)
                assert redeemed == replace(code, redeemed_at=NOW)
            used_before = not isinstance(outcome, nullcontext)
            assert on.left(*new.values()) == ([] if used_before else [*new.values()])

    @pytest.mark.parametrize("last", [False, True])
    def test_codes_are_not_redeemed_where_what_they_bring_cannot_be_stored(
        self, on: On, code: AuthorizationCode, last: bool
    ) -> None:
        access = an_access_token(on.human_user, on.application, a_family(on.human_user, on.application))
        refresh = a_refresh_token(on.family)
        with pytest.raises(Missing), on.writing() as storage:
            storage.tokens.redeem_code(
                code.digest, client_id=code.client_id, at=NOW, refresh=refresh, access=access, last=last
            )
        assert on.left(code, refresh) == [code]

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
