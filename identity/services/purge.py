"""Delete what has expired, in small batches, so that no other writer waits long."""

from collections.abc import Callable, Mapping
from datetime import datetime

from identity.storage.backend import Storage

BATCH = 500

#: What is purged: kind → one batch's deletion.
PURGES: Mapping[str, Callable[[Storage, datetime], int]] = {
    "access tokens": lambda storage, before: storage.tokens.purge_access(before, BATCH),
    "token families": lambda storage, before: storage.tokens.purge_families(before, BATCH),
    "authorization codes": lambda storage, before: storage.authorization_codes.purge(before, BATCH),
    "assertion identifiers": lambda storage, before: storage.assertions.purge(before, BATCH),
}
