"""Consents in SQL."""

from sqlalchemy import bindparam, delete, select

from identity.domain.consents import Consent
from identity.plugins.sql.rows import SqlStore, moment, readable, row_of, seconds, upsert, words, words_of
from identity.plugins.sql.tables import consents as table
from identity.storage.stores.consents import ConsentStore

_COLUMNS = (table.c.user_id, table.c.application_id, table.c.scope, table.c.given_at)
_THIS = (table.c.user_id == bindparam("user"), table.c.application_id == bindparam("application"))

_SET = upsert(table, by=(table.c.user_id, table.c.application_id), replacing=(table.c.scope, table.c.given_at))
_FIND = select(*_COLUMNS).where(*_THIS)
_OF_USER = (
    select(*_COLUMNS)
    .where(table.c.user_id == bindparam("user"))
    .order_by(table.c.given_at.desc(), table.c.application_id.desc())
)
_REMOVE = delete(table).where(*_THIS)


class SqlConsentStore(SqlStore, ConsentStore):
    """At most one row per user and application; it goes by foreign keys."""

    def set(self, consent: Consent) -> None:
        """Store the consent, or replace the one before."""
        values = {
            "user_id": consent.user_id,
            "application_id": consent.application_id,
            "scope": words(consent.scope),
            "given_at": seconds(consent.given_at),
        }
        self._try(_SET, values)

    def find(self, user_id: str, application_id: str) -> Consent | None:
        """What the user has agreed to for the application."""
        row = self._one(_FIND, {"user": user_id, "application": application_id})
        return None if row is None else _consent_of(*row)

    def of_user(self, user_id: str) -> tuple[Consent, ...]:
        """All consents of the user, last given first."""
        return tuple(readable(_consent_of, self._all(_OF_USER, {"user": user_id})))

    def remove(self, user_id: str, application_id: str) -> None:
        """Forget the consent."""
        self._touch_one(_REMOVE, {"user": user_id, "application": application_id})


@row_of(*_COLUMNS)
def _consent_of(user_id: str, application_id: str, scope: str, given_at: int) -> Consent:
    return Consent(user_id=user_id, application_id=application_id, scope=words_of(scope), given_at=moment(given_at))
