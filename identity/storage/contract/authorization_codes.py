"""Contract of the authorization code store."""

from contextlib import nullcontext
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from identity.domain.authorization_codes import AuthorizationCode, PresentedCode
from identity.domain.users import Subject
from identity.storage.contract.factories import (
    NOW,
    make_access_token,
    make_application,
    make_authorization_code,
    make_digest,
    make_id,
    make_organization,
    make_refresh_token,
    make_token_family,
)
from identity.storage.contract.harness import ContractBase, StorageHarness
from identity.storage.errors import AlreadyUsed, RowNotFound
from identity.storage.stores.purges import PurgeKind

SECOND = timedelta(seconds=1)


class AuthorizationCodeContract(ContractBase):
    """A code is redeemed once, by its own client, before it expires; a replay differs from an unknown code."""

    @pytest.fixture
    def code(self, on: StorageHarness) -> AuthorizationCode:
        return on.store_value(make_authorization_code(on.family))

    def test_codes_find_returns_everything_around_the_code_and_redeems_nothing(self, on: StorageHarness) -> None:
        code = make_authorization_code(on.family, session_id=on.session.id)
        used = make_authorization_code(on.family, redeemed_at=NOW)
        expired = make_authorization_code(on.family, expires_at=NOW - SECOND)
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
        family = make_token_family(on.human_user, on.application)
        stray = make_token_family(on.human_user, make_application())
        code, authorization_code = make_authorization_code(family), make_authorization_code(stray)
        added = make_organization()
        with on.transaction() as storage:
            storage.tokens.add_family(family, code, is_last_write=last)
        assert on.unchanged(family, code) == [family, code]
        with on.transaction() as storage:
            with pytest.raises(RowNotFound):
                storage.tokens.add_family(stray, authorization_code, is_last_write=last)
            storage.organizations.add(added)
        assert on.unchanged(stray, authorization_code, added) == [added]

    def test_codes_find_tells_that_the_session_has_ended_while_it_is_known(self, on: StorageHarness) -> None:
        codes = [make_authorization_code(on.family, session_id=item) for item in (on.session.id, None, make_id())]
        on.store(*codes)
        on.write.sessions.end(on.session.id, NOW)
        presented_codes = [on.read.tokens.find_authorization_code(code.digest) for code in codes]
        assert [presented_code is not None and presented_code.session_ended for presented_code in presented_codes] == [
            True,
            False,
            False,
        ]
        assert not any(code is not None and code.family.revoked_at for code in presented_codes)
        assert on.purge(PurgeKind.SESSIONS, on.session.ends_at + SECOND, 10) == 1
        presented_codes = [on.read.tokens.find_authorization_code(code.digest) for code in codes]
        assert [presented_code is not None and presented_code.session_ended for presented_code in presented_codes] == [
            False,
            False,
            False,
        ]
        assert [presented_code and presented_code.code for presented_code in presented_codes] == codes

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
                "refresh": make_refresh_token(on.family),
                "access": make_access_token(on.human_user, on.application, on.family, digest=make_digest()),
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
        access = make_access_token(on.human_user, on.application, make_token_family(on.human_user, on.application))
        refresh = make_refresh_token(on.family)
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
        authorization_code = on.store_value(make_authorization_code(on.family))
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
