"""Links that work once: for a new password, a new address, a new account."""

import json
import logging
from collections.abc import Mapping
from datetime import timedelta
from enum import StrEnum

from identity.crypto.sealing import Sealer, UnsealingError
from identity.crypto.secrets import new_token, token_digest
from identity.domain.errors import DomainError
from identity.domain.records import CORE_NAMESPACE, Record
from identity.domain.users import HumanUser
from identity.services.base import Service, TransactionState, translate_storage_errors
from identity.settings import Settings
from identity.storage.errors import AlreadyUsed, RowNotFound

log = logging.getLogger(__name__)


class OneTimeLinkKind(StrEnum):
    """What a link is good for."""

    PASSWORD_RESET = "password_reset"  # noqa: S105 - a kind
    EMAIL_CHANGE = "email_change"
    REGISTRATION = "registration"


#: Where each kind of link leads on the login host.
_PATHS: Mapping[OneTimeLinkKind, str] = {
    OneTimeLinkKind.PASSWORD_RESET: "/password/reset/",
    OneTimeLinkKind.EMAIL_CHANGE: "/email/",
    OneTimeLinkKind.REGISTRATION: "/register/",
}


#: What a link of somebody's carries besides: the address that they had when it was made.
_ADDRESS = "address"
#: The address that it was mailed to, if it was shown to nobody else.
_MAILED_TO = "mailed_to"


class InvalidOneTimeLink(DomainError):
    """The link was used, is too old, or never was one."""

    def __init__(self) -> None:
        super().__init__("This link was used or is too old.")


class OneTimeLinkService(Service):
    """A link is known by the digest of its code; what it carries along lies sealed beside it.

    A link of somebody's is good only while they have the address that they had when it was made: the mail may lie in a
    mailbox that is no longer theirs.

    A link proves that its user reads a mailbox only if it was mailed there and shown to nobody else. Whoever issues it
    with ``link_recipient`` hands it to a mail to that very address, and to nothing else.
    """

    def __init__(self, state: TransactionState, sealer: Sealer, settings: Settings) -> None:
        super().__init__(state)
        self._sealer, self._settings = sealer, settings

    def issue(
        self,
        kind: OneTimeLinkKind,
        *,
        user: HumanUser | None = None,
        content: Mapping[str, str] | None = None,
        revoke_earlier: bool = True,
        lifetime: timedelta | None = None,
        recipient: str = "",
    ) -> str:
        """The address of a new link; unless not ``revoke_earlier``, earlier ones of the kind for the same user stop
        working.

        Raises NotFound.
        """
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
        """Whose link it is, by id, and what it carries; looking uses nothing up. Raises InvalidOneTimeLink."""
        record = self._storage.records.find(CORE_NAMESPACE, kind, token_digest(code))
        if record is None or not record.is_live(self._now):
            raise InvalidOneTimeLink
        return record.user_id, self._content(record)

    def redeem(self, kind: OneTimeLinkKind, code: str) -> tuple[str | None, dict[str, str]]:
        """The same, used up: of racing callers exactly one gets it. Raises InvalidOneTimeLink."""
        try:
            used = self._storage.records.consume(CORE_NAMESPACE, kind, token_digest(code), self._now)
        except (AlreadyUsed, RowNotFound):
            raise InvalidOneTimeLink from None
        return used.user_id, self._content(used)

    def revoke_all(self, kind: OneTimeLinkKind, user_id: str) -> None:
        """Have the user's links of this kind stop working."""
        self._storage.records.delete_for_owner(CORE_NAMESPACE, kind, user_id=user_id)

    def _content(self, code: Record) -> dict[str, str]:
        try:
            content: dict[str, str] = json.loads(
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
    """The address that a link with this content was mailed to and shown to nobody else; empty for one handed out."""
    return content.get(_MAILED_TO, "")


def sealing_context(key: bytes) -> str:
    """With what the content of the link of this key is sealed."""
    return f"one-time code {key.hex()}"
