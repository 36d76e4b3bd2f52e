"""Delete what has expired, in small batches, so that no other writer waits long."""

from collections.abc import Callable, Mapping
from datetime import datetime

from identity.domain.attempts import REMEMBERED
from identity.domain.rules import LONGEST_TOKEN_LIFETIME
from identity.storage.backend import Storage

BATCH = 500


#: What is purged: kind → one batch's deletion. A session that was ended is kept for as long as a token that names it.
PURGES: Mapping[str, Callable[[Storage, datetime], int]] = {
    "access tokens": lambda storage, before: storage.tokens.purge_access(before, BATCH),
    "token families": lambda storage, before: storage.tokens.purge_families(before, BATCH),
    "authorization codes": lambda storage, before: storage.tokens.purge_codes(before, BATCH),
    "sessions": lambda storage, before: storage.sessions.purge(before - LONGEST_TOKEN_LIFETIME, BATCH),
    "authorization requests": lambda storage, before: storage.authorization_requests.purge(before, BATCH),
    "outgoing messages": lambda storage, before: storage.outbox.purge(before, BATCH),
    "attempts": lambda storage, before: storage.attempts.purge(before - REMEMBERED, BATCH),
    "records": lambda storage, before: storage.records.purge(before, BATCH),
}
