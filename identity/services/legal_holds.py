"""Legal holds: what is not to go by itself, as long as somebody says so."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime

from identity.crypto.secrets import digest
from identity.domain.errors import Conflict
from identity.domain.records import CORE, Record
from identity.services.changes import Look, UseCases, told

_KIND = "legal_holds"
_KEY = digest("all")
#: In place of an organization's id: everything there is.
EVERYTHING = "*"


@dataclass(frozen=True, slots=True)
class Hold:
    """Since when, and why."""

    since: datetime
    reason: str


class LegalHolds(UseCases):
    """Holds by the id of their organization, or of EVERYTHING. They stand in one record, of which there are few."""

    _look: Look

    def all(self) -> Mapping[str, Hold]:
        """Every hold there is."""
        with self._look() as storage:
            found = storage.records.find(CORE, _KIND, _KEY)
        held = {} if found is None else found.value
        return {id_: Hold(datetime.fromtimestamp(one["since"], UTC), str(one["reason"])) for id_, one in held.items()}

    def holds(self, organization_id: str) -> bool:
        """True if nothing of this organization may go by itself."""
        return not {organization_id, EVERYTHING}.isdisjoint(self.all())

    def place(self, organization_id: str, reason: str) -> None:
        """Hold what there is of the organization. Raises Conflict if it is held already."""
        if organization_id in self.all():
            raise Conflict("This is held already.")
        hold = {"since": int(self._now.timestamp()), "reason": reason}
        self._keep({**self._stored(), organization_id: hold})
        self._record_change("legal_hold.placed", organization_id, reason)

    def release(self, organization_id: str) -> None:
        """Let it go as the settings say. Raises Conflict if it is not held."""
        present = self._stored()
        if organization_id not in present:
            raise Conflict("This is not held.")
        reason = str(present.pop(organization_id)["reason"])
        self._keep(present)
        self._record_change("legal_hold.released", organization_id, reason)

    def _stored(self) -> dict[str, dict[str, object]]:
        found = self._storage.records.find(CORE, _KIND, _KEY)
        return {} if found is None else dict(found.value)

    def _keep(self, held: dict[str, dict[str, object]]) -> None:
        found = self._storage.records.find(CORE, _KIND, _KEY)
        with told("legal_hold", _KIND):
            if found is None:
                new = Record(plugin=CORE, kind=_KIND, key=_KEY, value=held, created_at=self._now)
                if self._storage.records.add(new) is not None:
                    raise Conflict("Somebody else changed the holds at this moment. Look again.")
            else:
                self._storage.records.replace(replace(found, value=held, version=found.version + 1))

    def _record_change(self, event: str, organization_id: str, reason: str) -> None:
        everything = organization_id == EVERYTHING
        self._audit.record(
            event,
            kind="instance" if everything else "organization",
            id=None if everything else organization_id,
            organization_id=None if everything else organization_id,
            detail={"reason": reason},
        )
