"""One-time codes, in memory."""

from dataclasses import replace
from datetime import datetime

from identity.domain.one_time_codes import CodeKind, OneTimeCode
from identity.storage.errors import AlreadyUsed, Missing
from identity.storage.memory.tables import Tables, purge
from identity.storage.stores.one_time_codes import OneTimeCodeStore


class MemoryOneTimeCodeStore(OneTimeCodeStore):
    """Rows by digest."""

    def __init__(self, tables: Tables) -> None:
        self._tables = tables

    def add(self, code: OneTimeCode) -> None:
        if code.user_id is not None:
            self._tables.users.get(code.user_id)
        self._tables.one_time_codes.insert(code.digest, code, named="digest")

    def find(self, digest: bytes) -> OneTimeCode | None:
        return self._tables.one_time_codes.find(digest)

    def consume(self, digest: bytes, kind: CodeKind, at: datetime) -> OneTimeCode:
        code = self._tables.one_time_codes.get(digest)
        if code.kind is not kind:
            raise Missing("code")
        if code.used_at is not None:
            raise AlreadyUsed(code)
        if not code.live(at):
            raise Missing("code")
        self._tables.one_time_codes.put(digest, replace(code, used_at=at))
        return code

    def drop(self, user_id: str, kind: CodeKind) -> int:
        dropped = [code for code in self._tables.one_time_codes if code.user_id == user_id and code.kind is kind]
        for code in dropped:
            self._tables.one_time_codes.delete(code.digest)
        return len(dropped)

    def purge(self, before: datetime, limit: int) -> int:
        table = self._tables.one_time_codes
        return purge(table, limit, lambda code: code.expires_at < before, table.delete)
