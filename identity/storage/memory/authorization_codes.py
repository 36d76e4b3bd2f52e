"""Authorization codes, in memory."""

from dataclasses import replace
from datetime import datetime

from identity.domain.authorization_codes import AuthorizationCode, PresentedCode
from identity.storage.errors import AlreadyUsed, Missing
from identity.storage.memory.entities import MemoryStore
from identity.storage.memory.sessions import has_ended
from identity.storage.memory.users import MemoryUserStore
from identity.storage.stores.authorization_codes import AuthorizationCodeStore


class MemoryAuthorizationCodeStore(MemoryStore, AuthorizationCodeStore):
    """Rows by digest."""

    def add(self, code: AuthorizationCode) -> None:
        self._tables.authorization_codes.insert({code.digest: code})

    def find(self, digest: bytes) -> PresentedCode | None:
        code = self._tables.authorization_codes.find(digest)
        if code is None:
            return None
        return PresentedCode(
            code,
            self._tables.families.get(code.family_id),
            MemoryUserStore(self._tables).find_subject(code.user_id),
            session_ended=has_ended(self._tables, code.session_id),
        )

    def redeem(self, digest: bytes, *, client_id: str, at: datetime) -> AuthorizationCode:
        code = self._tables.authorization_codes.get(digest)
        if code.client_id != client_id:
            raise Missing("code")
        # A replay is told from an expired code for ever: it is a sign of theft.
        if code.redeemed_at is not None:
            raise AlreadyUsed(code)
        if code.expires_at <= at:
            raise Missing("code")
        redeemed = replace(code, redeemed_at=at)
        self._tables.authorization_codes.put(digest, redeemed)
        return redeemed

    def purge(self, before: datetime, limit: int) -> int:
        return self._tables.authorization_codes.delete_where(lambda _, code: self._due(code, before), limit)

    def _due(self, code: AuthorizationCode, before: datetime) -> bool:
        unused = code.redeemed_at is None and code.expires_at < before
        return unused or self._tables.families.get(code.family_id).ends_at < before
