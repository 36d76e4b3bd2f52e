"""The identifiers by which applications know users: public, or pairwise (OpenID Connect Core §8).

What could an application gain? It must neither learn a user's id nor recognize users of another application. So a
pairwise identifier is a keyed hash. Nothing reverses it: identifiers that come back, such as in ``id_token_hint``, are
compared. Applications have the same ones only in one organization and one sector: an application that names the host of
a stranger, in its own organization, gets others. So does a client that registered itself, whatever host it names.
"""

import hashlib
import hmac
from dataclasses import dataclass, replace

from identity.cached_property import cached_property
from identity.crypto import base64url
from identity.crypto.secrets import is_id, new_token
from identity.domain.applications import ApplicationClient
from identity.domain.tokens import AccessToken
from identity.services.base import Service
from identity.services.records import RecordService
from identity.storage.errors import StorageUnavailable

_KIND, _KEY = "pairwise_subjects", "salt"


@dataclass(eq=False, repr=False)
class SubjectIdentifierService(Service):
    """The salt is stored once, sealed under the master key, and never changes: with another one, all people would be
    strangers to their applications."""

    _records: RecordService

    def identify(self, user_id: str, client: ApplicationClient | None) -> str:
        """The ``sub`` of a user for an application. Raises StorageUnavailable if the salt is gone: none is guessed."""
        if client is None or not client.application.has_pairwise_subjects:
            return user_id
        content = f"{client.responsible_organization_id}\n{client.application.sector}\n{user_id}"
        return base64url.encode(hmac.digest(self._salt, content.encode(), hashlib.sha256))

    def is_known_as(self, identifier: str, user_id: str, *, client: ApplicationClient | None) -> bool:
        """True if the application knows the user by this identifier."""
        return hmac.compare_digest(identifier.encode(), self.identify(user_id, client).encode())

    def present(self, token: AccessToken, client: ApplicationClient) -> AccessToken:
        """The token as this application may see it, whichever it was issued to: with its own pairwise identifiers of
        the user and the actors, and no others. Names of actors that are no ids of users stay."""
        if not client.application.has_pairwise_subjects:
            return token
        return replace(
            token,
            subject=token.subject if token.user_id is None else self.identify(token.user_id, client),
            actors=tuple(self.identify(item, client) if is_id(item) else item for item in token.actors),
        )

    def ensure_salt(self) -> None:
        """Create the salt in the transaction of the first application that needs it. One of several racing callers
        succeeds, on all nodes."""
        self._records.add(_KIND, _KEY, {"salt": new_token()}, seal=True)

    @cached_property
    def _salt(self) -> bytes:
        record = self._records.find(_KIND, _KEY)
        if record is None:
            raise StorageUnavailable("the salt of pairwise subject identifiers is missing")
        return str(record.value["salt"]).encode()
