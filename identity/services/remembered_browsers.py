"""Browsers that skip the second factor for some time, because the person chose so."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta

from identity.crypto.secrets import new_id, new_token
from identity.domain.errors import NotFound
from identity.domain.records import CORE_NAMESPACE
from identity.domain.users import Subject
from identity.services.base import Service
from identity.services.records import RecordService

RECORD_KIND = "remembered_browser"
_LONGEST_USER_AGENT = 500


@dataclass(frozen=True, slots=True)
class RememberedBrowser:
    """A remembered browser as its person sees it."""

    id: str
    user_agent: str
    client_address: str
    added_at: datetime
    ends_at: datetime | None


@dataclass(eq=False, repr=False)
class RememberedBrowserService(Service):
    """A browser presents one secret per person. Its digest is kept until it expires, is revoked, or the person's
    password or factors change."""

    _records: RecordService

    def remember(self, subject: Subject, user_agent: str, lifetime: timedelta) -> tuple[str, str]:
        """The id of the browser, and the secret that it presents from now on. Raises NotFound."""
        id_, secret = new_id(), new_token()
        value = {
            "id": id_,
            "user_agent": user_agent[:_LONGEST_USER_AGENT],
            "client_address": self._audit.actor.client_address or "",
        }
        ends_at = self._now + lifetime
        self._records.add(RECORD_KIND, _key(id_, secret), value, user_id=subject.user.id, expires_at=ends_at)
        self._record_about("browser.remembered", subject)
        return id_, secret

    def remembered_since(self, user_id: str, presented: Mapping[str, str], max_age: timedelta) -> datetime | None:
        """Since when a browser with these secrets by id is remembered; None if it is not. Browsers remembered for
        longer than ``max_age`` do not count."""
        for id_, secret in presented.items():
            record = self._records.find(RECORD_KIND, _key(id_, secret))
            if record is not None and record.user_id == user_id and self._now < record.created_at + max_age:
                return record.created_at
        return None

    def list_by_user(self, user_id: str) -> tuple[RememberedBrowser, ...]:
        """All browsers of a person, newest first."""
        return tuple(
            RememberedBrowser(
                record.value["id"],
                record.value["user_agent"],
                record.value["client_address"],
                record.created_at,
                record.expires_at,
            )
            for record in self._records.list_by_owner(RECORD_KIND, user_id=user_id)
        )

    def forget(self, subject: Subject, browser_id: str) -> None:
        """Ask for a second factor there again. Raises NotFound."""
        for record in self._records.list_by_owner(RECORD_KIND, user_id=subject.user.id):
            if record.value["id"] == browser_id and self._storage.records.delete(
                CORE_NAMESPACE, RECORD_KIND, record.key
            ):
                self._record_about("browser.forgotten", subject)
                return
        raise NotFound("browser", browser_id)

    def forget_all(self, user_id: str) -> int:
        """Ask for a second factor everywhere; returns the number of browsers forgotten."""
        return self._records.delete_by_owner(RECORD_KIND, user_id=user_id)


def _key(browser_id: str, secret: str) -> str:
    return f"{browser_id}\n{secret}"
