"""Single-use links: to set a password, to verify an address, to register."""

import json
import logging
from collections.abc import Mapping
from datetime import timedelta
from enum import StrEnum
from typing import Any

from identity.crypto.sealing import UnsealingError
from identity.crypto.secrets import new_token, token_digest
from identity.domain.errors import DomainError
from identity.domain.records import CORE_NAMESPACE, Record
from identity.domain.users import HumanUser, Subject
from identity.services.base import Service, translate_storage_errors
from identity.storage.errors import AlreadyUsed, RowNotFound

log = logging.getLogger(__name__)


class OneTimeLinkKind(StrEnum):
    PASSWORD_RESET = "password_reset"  # noqa: S105 - a kind
    EMAIL_CHANGE = "email_change"
    REGISTRATION = "registration"


#: Path of each kind of link on the login host.
_PATHS: Mapping[OneTimeLinkKind, str] = {
    OneTimeLinkKind.PASSWORD_RESET: "/password/reset/",
    OneTimeLinkKind.EMAIL_CHANGE: "/email/",
    OneTimeLinkKind.REGISTRATION: "/register/",
}


#: Content member: the user's address when the link was issued.
_ADDRESS = "address"
#: Content member: the address the link was mailed to, if it was shown nowhere else.
_MAILED_TO = "mailed_to"


class InvalidOneTimeLink(DomainError):
    """The link was used, has expired or never existed."""

    def __init__(self) -> None:
        super().__init__("This link was used or is too old.")


class OneTimeLinkService(Service):
    """Stores the digest of each link's code and, sealed, the link's content.

    A user's link is valid only while their address is the one it was issued for: the mail may be in a mailbox that
    is no longer theirs.

    A link proves that the user reads a mailbox only if it was mailed there and shown nowhere else. A caller of
    ``issue`` with ``recipient`` must put the link into a mail to exactly that address and nowhere else.
    """

    def issue(
        self,
        kind: OneTimeLinkKind,
        *,
        user: HumanUser | None = None,
        content: Mapping[str, Any] | None = None,
        revoke_earlier: bool = True,
        lifetime: timedelta | None = None,
        recipient: str = "",
    ) -> str:
        """Return the URL of a new link. Unless ``revoke_earlier`` is False, the user's earlier links of the kind stop
        working. Raises NotFound."""
        code = new_token()
        key = token_digest(code)
        carried = dict(content or {})
        user_id = None if user is None else user.id
        if user is not None:
            carried[_ADDRESS] = user.profile.email
            if recipient:
                carried[_MAILED_TO] = recipient
            if revoke_earlier:
                self.revoke_all(kind, user.id)
        with translate_storage_errors("user", user_id or ""):
            self._storage.records.add(
                Record(
                    plugin=CORE_NAMESPACE,
                    kind=kind,
                    key=key,
                    user_id=user_id,
                    sealed=self._sealer.seal(json.dumps(carried).encode(), associated_data=sealing_context(key)),
                    created_at=self._now,
                    expires_at=self._now + (lifetime or self._settings.one_time_link_ttl),
                )
            )
        return f"{self._settings.login_url}{_PATHS[kind]}{code}"

    def read(self, kind: OneTimeLinkKind, code: str) -> tuple[str | None, dict[str, str]]:
        """The user id and content of the link, without redeeming it. Raises InvalidOneTimeLink."""
        record = self._storage.records.find(CORE_NAMESPACE, kind, token_digest(code))
        if record is None or not record.is_live(self._now):
            raise InvalidOneTimeLink
        return record.user_id, self._content(record)

    def redeem(self, kind: OneTimeLinkKind, code: str) -> tuple[str | None, dict[str, str]]:
        """Like ``read``, and redeem the link: exactly one of several racing callers succeeds. Raises
        InvalidOneTimeLink."""
        try:
            used = self._storage.records.consume(CORE_NAMESPACE, kind, token_digest(code), self._now)
        except (AlreadyUsed, RowNotFound):
            raise InvalidOneTimeLink from None
        return used.user_id, self._content(used)

    def get_owner(self, user_id: str | None) -> Subject:
        """The active person whose link it is. Raises InvalidOneTimeLink."""
        subject = None if user_id is None else self._storage.users.find_subject(user_id)
        if subject is None or not subject.is_active or not isinstance(subject.user, HumanUser):
            raise InvalidOneTimeLink
        return subject

    def revoke_all(self, kind: OneTimeLinkKind, user_id: str) -> None:
        """Make the user's links of this kind stop working."""
        self._storage.records.delete_for_owner(CORE_NAMESPACE, kind, user_id=user_id)

    def _content(self, code: Record) -> dict[str, Any]:
        try:
            content: dict[str, Any] = json.loads(
                self._sealer.open(code.sealed, associated_data=sealing_context(code.key))
            )
        except (UnsealingError, ValueError) as damage:
            log.error("a one-time code cannot be opened: %s", type(damage).__name__)
            raise InvalidOneTimeLink from None
        if code.user_id is not None:
            user = self._storage.users.find(code.user_id)
            if not isinstance(user, HumanUser) or content.pop(_ADDRESS, user.profile.email) != user.profile.email:
                raise InvalidOneTimeLink
        return content


def link_recipient(content: Mapping[str, str]) -> str:
    """The only address the link with this content was sent to; empty for one that was handed out."""
    return content.get(_MAILED_TO, "")


def sealing_context(key: bytes) -> str:
    return f"one-time code {key.hex()}"
