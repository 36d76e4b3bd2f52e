"""Cursors: where the next page of a list starts, sealed so that only the service can create one."""

import json

from identity.crypto import base64url
from identity.crypto.sealing import UnsealingError
from identity.domain.errors import Invalid
from identity.domain.messages import gettext_lazy
from identity.services.base import Service
from identity.storage.paging import PageCursor


class CursorService(Service):
    """Each cursor is bound to the name of its list and cannot be used for another."""

    def encode(self, cursor: PageCursor | None, list_name: str) -> str | None:
        """The cursor as URL-safe text; None for None, which is the end of the list."""
        if cursor is None:
            return None
        plain = json.dumps([cursor.value, cursor.id]).encode()
        return base64url.encode(self._sealer.seal(plain, associated_data=_sealing_context(list_name)))

    def decode(self, text: str, list_name: str) -> PageCursor:
        """The cursor from its text. Raises Invalid."""
        try:
            sealed = base64url.decode(text)
            value, identifier = json.loads(self._sealer.open(sealed, associated_data=_sealing_context(list_name)))
        except (UnsealingError, ValueError):
            raise Invalid({"cursor": gettext_lazy("This list has changed. Start from the beginning.")}) from None
        return PageCursor(value, identifier)


def _sealing_context(list_name: str) -> str:
    return f"cursor {list_name}"
