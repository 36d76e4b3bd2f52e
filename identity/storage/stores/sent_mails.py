"""The log of sent mails."""

from abc import ABC, abstractmethod
from datetime import datetime

from identity.domain.sent_mails import SentMail
from identity.storage.paging import FIRST_PAGE, PageRequest, ResultPage


class SentMailStore(ABC):
    """Mails that were sent or given up. They are deleted with the user they name."""

    @abstractmethod
    def add(self, mail: SentMail) -> None:
        """Raises RowNotFound if the user does not exist."""

    @abstractmethod
    def page(self, user_id: str | None, request: PageRequest = FIRST_PAGE) -> ResultPage[SentMail]:
        """The mails to the user, or all, newest first by ``created_at``."""

    @abstractmethod
    def delete_before(self, moment: datetime) -> int:
        """Delete mails that were created before; returns their number."""
