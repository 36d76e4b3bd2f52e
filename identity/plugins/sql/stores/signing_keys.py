"""Signing keys of the service in SQL."""

from sqlalchemy import bindparam, delete, insert, select, update

from identity.domain.signing_keys import SigningKey
from identity.plugins.sql.rows import SqlStore, moment, readable, row_of, seconds
from identity.plugins.sql.tables import signing_keys as table
from identity.storage.stores.signing_keys import SigningKeyStore

_ADD = insert(table)
_COLUMNS = (
    table.c.id,
    table.c.generation,
    table.c.algorithm,
    table.c.public_key,
    table.c.sealed_private_key,
    table.c.created_at,
    table.c.active_at,
)
_ALL = select(*_COLUMNS).order_by(table.c.generation)
_RESEAL = update(table).where(table.c.id == bindparam("key"))
_REMOVE = delete(table).where(table.c.id == bindparam("key"))


class SqlSigningKeyStore(SqlStore, SigningKeyStore):
    """One row each."""

    def add(self, key: SigningKey) -> None:
        """Store the next generation."""
        values = {
            "id": key.id,
            "generation": key.generation,
            "algorithm": key.algorithm,
            "public_key": key.public_key,
            "sealed_private_key": key.sealed_private_key,
            "created_at": seconds(key.created_at),
            "active_at": seconds(key.active_at),
        }
        self._try(_ADD, values)

    def all(self) -> tuple[SigningKey, ...]:
        """Every stored key, oldest generation first."""
        return tuple(readable(_key_of, self._all(_ALL)))

    def reseal(self, key_id: str, sealed_private_key: bytes) -> None:
        """Replace the sealed private key."""
        self._touch_one(_RESEAL, {"key": key_id, "sealed_private_key": sealed_private_key})

    def remove(self, key_id: str) -> None:
        """Delete a key."""
        self._touch_one(_REMOVE, {"key": key_id})


@row_of(*_COLUMNS)
def _key_of(
    id_: str,
    generation: int,
    algorithm: str,
    public_key: bytes,
    sealed_private_key: bytes,
    created_at: int,
    active_at: int,
) -> SigningKey:
    return SigningKey(
        id=id_,
        generation=generation,
        algorithm=algorithm,
        public_key=public_key,
        sealed_private_key=sealed_private_key,
        created_at=moment(created_at),
        active_at=moment(active_at),
    )
