"""Form tokens: sealed texts that a page issues and accepts once. Nothing is stored before they come back."""

import json
from collections.abc import Mapping
from datetime import timedelta
from typing import Any

from identity.crypto import base64url
from identity.crypto.sealing import UnsealingError
from identity.crypto.secrets import new_id, token_digest
from identity.domain.records import CORE_NAMESPACE, Record
from identity.services.base import Service

_KIND = "ticket"


class FormTokenService(Service):
    """Each is sealed for one purpose, which names what it is bound to: a page, a sign-in, a user. So it can be neither
    forged nor read, and viewing a page writes nothing."""

    def issue(self, purpose: str, content: Mapping[str, Any], lifetime: timedelta) -> str:
        """A token for a form that carries the content and is valid for this time."""
        ends_at = int((self._now + lifetime).timestamp())
        plain = json.dumps([new_id(), ends_at, dict(content)]).encode()
        return base64url.encode(self._sealer.seal(plain, associated_data=_sealing_context(purpose)))

    def read(self, purpose: str, token: str) -> Mapping[str, Any] | None:
        """The token's content, any number of times until it expires; None as for ``redeem``."""
        opened = self._open(purpose, token)
        return None if opened is None else opened[2]

    def redeem(self, purpose: str, token: str) -> Mapping[str, Any] | None:
        """The token's content, once; None if it has expired, was used, or has another purpose. Of racing callers
        exactly one gets it. It is used up when the transaction commits."""
        opened = self._open(purpose, token)
        if opened is None:
            return None
        id_, lifetime, content = opened
        used = Record(
            plugin=CORE_NAMESPACE,
            kind=_KIND,
            key=token_digest(id_),
            created_at=self._now,
            expires_at=self._now + lifetime,
        )
        record = self._storage.records.add(used, replacing_expired=True)
        return content if record is None else None

    def _open(self, purpose: str, token: str) -> tuple[str, timedelta, Mapping[str, Any]] | None:
        """Id, remaining lifetime and content; None unless the token is valid for this purpose."""
        try:
            id_, ends_at, content = json.loads(
                self._sealer.open(base64url.decode(token), associated_data=_sealing_context(purpose))
            )
        except (UnsealingError, ValueError):
            return None
        lifetime = timedelta(seconds=ends_at - self._now.timestamp())
        return (id_, lifetime, content) if lifetime > timedelta() else None


def _sealing_context(purpose: str) -> str:
    return f"ticket {purpose}"
