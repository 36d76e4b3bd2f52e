"""The log of sent mails, in memory."""

from datetime import datetime

from identity.domain.sent_mails import SentMail
from identity.storage.memory.entity_store import MemoryStore, page_newest_first
from identity.storage.paging import FIRST_PAGE, PageRequest, ResultPage
from identity.storage.stores.sent_mails import SentMailStore


class MemorySentMailStore(MemoryStore, SentMailStore):
    def add(self, mail: SentMail) -> None:
        self._tables.sent_mails.insert({mail.id: mail})

    def page(self, user_id: str | None, request: PageRequest = FIRST_PAGE) -> ResultPage[SentMail]:
        return page_newest_first((mail for mail in self._tables.sent_mails if user_id in (None, mail.user_id)), request)

    def delete_before(self, moment: datetime) -> int:
        return self._tables.sent_mails.delete_where(lambda _, mail: mail.created_at < moment)
