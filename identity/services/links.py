"""Links that work once: for a new password, a new address, a new account."""

import json
import logging
from collections.abc import Mapping
from datetime import timedelta
from enum import StrEnum

from identity.crypto.sealing import Sealer, Unsealable
from identity.crypto.secrets import digest, new_token
from identity.domain.errors import DomainError
from identity.domain.records import CORE, Record
from identity.domain.users import HumanUser
from identity.services.changes import TransactionState, UseCases, told
from identity.settings import Settings
from identity.storage.errors import AlreadyUsed, Missing

log = logging.getLogger(__name__)


class CodeKind(StrEnum):
    """What a link is good for."""

    PASSWORD_RESET = "password_reset"  # noqa: S105 - a kind
    EMAIL_CHANGE = "email_change"
    REGISTRATION = "registration"


#: Where each kind of link leads on the login host.
_PATHS: Mapping[CodeKind, str] = {
    CodeKind.PASSWORD_RESET: "/password/reset/",
    CodeKind.EMAIL_CHANGE: "/email/",
    CodeKind.REGISTRATION: "/register/",
}


#: What a link of somebody's carries besides: the address that they had when it was made.
_ADDRESS = "address"
#: The address that it was mailed to, if it was shown to nobody else.
_MAILED_TO = "mailed_to"


class LinkUsed(DomainError):
    """The link was used, is too old, or never was one."""

    def __init__(self) -> None:
        super().__init__("This link was used or is too old.")


class Links(UseCases):
    """A link is known by the digest of its code; what it carries along lies sealed beside it.

    A link of somebody's is good only while they have the address that they had when it was made: the mail may lie in a
    mailbox that is no longer theirs.

    A link proves that its user reads a mailbox only if it was mailed there and shown to nobody else. Whoever issues it
    with ``mailed_to`` hands it to a mail to that very address, and to nothing else.
    """

    def __init__(self, state: TransactionState, sealer: Sealer, settings: Settings) -> None:
        super().__init__(state)
        self._sealer, self._settings = sealer, settings

    def issue(
        self,
        kind: CodeKind,
        *,
        user: HumanUser | None = None,
        content: Mapping[str, str] | None = None,
        replacing: bool = True,
        lifetime: timedelta | None = None,
        mailed_to: str = "",
    ) -> str:
        """The address of a new link; unless not ``replacing``, earlier ones of the kind for the same user stop working.

        Raises NotFound.
        """
        code = new_token()
        key = digest(code)
        carried = dict(content or {})
        user_id = None if user is None else user.id
        if user is not None:
            carried[_ADDRESS] = user.profile.email
            if mailed_to:
                carried[_MAILED_TO] = mailed_to
            if replacing:
                self.drop(kind, user.id)
        with told("user", user_id or ""):
            self._storage.records.add(
                Record(
                    plugin=CORE,
                    kind=kind,
                    key=key,
                    user_id=user_id,
                    sealed=self._sealer.seal(json.dumps(carried).encode(), associated=place(key)),
                    created_at=self._now,
                    expires_at=self._now + (lifetime or self._settings.link_lifetime),
                )
            )
        return f"{self._settings.login_url}{_PATHS[kind]}{code}"

    def look(self, kind: CodeKind, code: str) -> tuple[str | None, dict[str, str]]:
        """Whose link it is, by id, and what it carries; looking uses nothing up. Raises LinkUsed."""
        found = self._storage.records.find(CORE, kind, digest(code))
        if found is None or not found.live(self._now):
            raise LinkUsed
        return found.user_id, self._content(found)

    def use(self, kind: CodeKind, code: str) -> tuple[str | None, dict[str, str]]:
        """The same, used up: of racing callers exactly one gets it. Raises LinkUsed."""
        try:
            used = self._storage.records.take(CORE, kind, digest(code), self._now)
        except (AlreadyUsed, Missing):
            raise LinkUsed from None
        return used.user_id, self._content(used)

    def drop(self, kind: CodeKind, user_id: str) -> None:
        """Have the user's links of this kind stop working."""
        self._storage.records.drop_of_owner(CORE, kind, user_id=user_id)

    def _content(self, code: Record) -> dict[str, str]:
        try:
            content: dict[str, str] = json.loads(self._sealer.open(code.sealed, associated=place(code.key)))
        except (Unsealable, ValueError) as damage:
            log.error("a one-time code cannot be opened: %s", type(damage).__name__)
            raise LinkUsed from None
        if code.user_id is not None:
            user = self._storage.users.find(code.user_id)
            if not isinstance(user, HumanUser) or content.pop(_ADDRESS, user.profile.email) != user.profile.email:
                raise LinkUsed
        return content


def mailed_to(content: Mapping[str, str]) -> str:
    """The address that a link with this content was mailed to and shown to nobody else; empty for one handed out."""
    return content.get(_MAILED_TO, "")


def place(key: bytes) -> str:
    """With what the content of the link of this key is sealed."""
    return f"one-time code {key.hex()}"
