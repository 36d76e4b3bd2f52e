"""Leases: which node does a piece of background work."""

from datetime import datetime

from identity.crypto.secrets import digest
from identity.domain.records import CORE, Record
from identity.storage.backend import Storage
from identity.storage.errors import Unreadable


def acquire(storage: Storage, name: str, *, at: datetime, until: datetime) -> bool:
    """Take the lease until then by one conditional write; False while another holds it.

    Whoever holds it gives it back by taking it from the moment of its end until now.
    """
    lease = Record(plugin=CORE, kind="lease", key=digest(name), created_at=at, expires_at=until)
    try:
        return storage.records.add(lease, replacing_expired=True) is None
    except Unreadable:
        # Whose it is matters to nobody; its end stands, or is none.
        return False
