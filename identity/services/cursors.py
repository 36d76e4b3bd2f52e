"""Cursors: where the next page of a list starts, in a text that nobody but the service can make."""

import json
from base64 import urlsafe_b64decode, urlsafe_b64encode

from identity.crypto.sealing import Sealer, Unsealable
from identity.domain.errors import Invalid
from identity.domain.words import say
from identity.services.changes import TransactionState, UseCases
from identity.storage.paging import Cursor


class Cursors(UseCases):
    """Each text is bound to the name of its list: the cursor of one list opens nothing in another."""

    def __init__(self, state: TransactionState, sealer: Sealer) -> None:
        super().__init__(state)
        self._sealer = sealer

    def text(self, cursor: Cursor | None, list_name: str) -> str | None:
        """The cursor as a text for an address; None for None, which is the end of the list."""
        if cursor is None:
            return None
        plain = json.dumps([cursor.value, cursor.id]).encode()
        return urlsafe_b64encode(self._sealer.seal(plain, associated=_place(list_name))).rstrip(b"=").decode()

    def read(self, text: str, list_name: str) -> Cursor:
        """The cursor that was given out as this text. Raises Invalid."""
        try:
            sealed = urlsafe_b64decode(text.encode("ascii") + b"=" * (-len(text) % 4))
            value, identifier = json.loads(self._sealer.open(sealed, associated=_place(list_name)))
        except (Unsealable, ValueError):
            raise Invalid({"cursor": say("This list has changed. Start it again.")}) from None
        return Cursor(value, identifier)


def _place(list_name: str) -> str:
    return f"cursor {list_name}"
