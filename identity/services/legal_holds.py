"""Legal holds: what is not to go, as long as somebody says so."""

from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime

from identity.crypto.secrets import digest, new_id
from identity.domain.errors import Conflict, Invalid, NotFound
from identity.domain.legal_holds import EVERYTHING, Held, Hold
from identity.domain.records import CORE, Record
from identity.domain.users import HumanUser, User
from identity.domain.words import say
from identity.services.changes import UseCases, told
from identity.services.commands.legal_holds import PlaceLegalHold

_KIND = "legal_holds"
_KEY = digest("all")
#: All are read at once, by each batch of a purge.
MOST = 1000


class LegalHolds(UseCases):
    """Holds by what they hold. They stand in one record, of which there are few."""

    def all(self) -> Mapping[str, Hold]:
        """Every hold there is, the oldest first."""
        with self._look() as storage:
            found = storage.records.find(CORE, _KIND, _KEY)
        return {} if found is None else _holds(found)

    def get(self, hold_id: str) -> Hold:
        """The hold. Raises NotFound."""
        found = next((hold for hold in self.all().values() if hold.id == hold_id), None)
        return self._found(found, "legal hold", hold_id)

    def over(self, user: User) -> tuple[Hold, ...]:
        """The holds by which the account stays: its own, that of its organization, that of everything."""
        return _over(user, self.all())

    def refuse_removal(self, user: User) -> None:
        """Raise Conflict if the account has to stay. Nobody can place a hold before it is gone."""
        if _over(user, _holds(self._record(locked=True))):
            raise Conflict(say("This account is under a legal hold and cannot be deleted."))

    def refuse_removal_of_organization(self, organization_id: str) -> None:
        """The same for an organization and everybody of it."""
        for hold in _holds(self._record(locked=True)).values():
            if hold.organization_id in (organization_id, None):
                raise Conflict(
                    say("This organization, or somebody of it, is under a legal hold: it cannot be deleted.")
                )

    def place(self, command: PlaceLegalHold) -> Hold:
        """Hold a person, an organization or everything.

        Raises Invalid if there is no such thing; Conflict if it is held already, or if there are very many holds.
        """
        held, organization_id = self._named(command)
        record = self._record()
        if held in record.value:
            raise Conflict(say("This is held already."))
        if len(record.value) >= MOST:
            raise Conflict(say("There are {n} legal holds. Hold whole organizations, or all.", n=MOST))
        hold = Hold(id=new_id(), held=held, organization_id=organization_id, since=self._now, reason=command.reason)
        self._keep(record, {**record.value, held: _kept(hold)})
        # Whoever was just removing it has been waited for.
        self._named(command)
        self._record_change("legal_hold.placed", hold)
        return hold

    def release(self, hold_id: str) -> None:
        """Let go what it holds, as the settings say. Raises NotFound."""
        hold = self.get(hold_id)
        record = self._record()
        if record.value.get(hold.held, {}).get("id") != hold_id:
            raise NotFound("legal hold", hold_id)
        self._keep(record, {held: one for held, one in record.value.items() if held != hold.held})
        self._record_change("legal_hold.released", hold)

    def _named(self, command: PlaceLegalHold) -> tuple[str, str | None]:
        """What is to be held, and of which organization it is. Raises Invalid."""
        held_id = command.held_id or ""
        if command.kind is Held.INSTANCE:
            if held_id:
                raise Invalid({"held_id": say("Everything is held: name nothing.")})
            return EVERYTHING, None
        if command.kind is Held.ORGANIZATION:
            organization = self._storage.organizations.find(held_id)
            if organization is None:
                raise Invalid({"held_id": say("There is no such organization.")})
            return organization.id, organization.id
        user = self._storage.users.find(held_id)
        if not isinstance(user, HumanUser):
            raise Invalid({"held_id": say("There is no such user.")})
        return user.id, user.organization_id

    def _record(self, *, locked: bool = False) -> Record:
        """What the holds stand in, made by whoever needs it first."""
        found = self._storage.records.find(CORE, _KIND, _KEY, locked=locked)
        if found is not None:
            return found
        empty = Record(plugin=CORE, kind=_KIND, key=_KEY, value={}, created_at=self._now)
        if self._storage.records.add(empty) is None:
            return empty
        return self._found(self._storage.records.find(CORE, _KIND, _KEY, locked=locked), "legal_hold", _KIND)

    def _keep(self, record: Record, held: Mapping[str, object]) -> None:
        with told("legal_hold", _KIND):
            self._storage.records.replace(replace(record, value=held, version=record.version + 1))

    def _record_change(self, event: str, hold: Hold) -> None:
        """Tell the trail. One on a person is no event about them: people read those of themselves, with the reason."""
        kind, of, about = hold.kind.value, hold.organization_id, {}
        if hold.kind is Held.USER:
            kind, of, about = "legal_hold", hold.id, {"user_id": hold.held}
        detail = {**about, "reason": hold.reason}
        self._audit.record(event, kind=kind, id=of, organization_id=hold.organization_id, detail=detail)


def _holds(record: Record) -> Mapping[str, Hold]:
    holds = [_hold(held, one) for held, one in record.value.items()]
    return {hold.held: hold for hold in sorted(holds, key=lambda hold: hold.id)}


def _over(user: User, holds: Mapping[str, Hold]) -> tuple[Hold, ...]:
    return tuple(holds[one] for one in (user.id, user.organization_id, EVERYTHING) if one in holds)


def _kept(hold: Hold) -> dict[str, object]:
    return {
        "id": hold.id,
        "organization_id": hold.organization_id,
        "since": int(hold.since.timestamp()),
        "reason": hold.reason,
    }


def _hold(held: str, kept: Mapping[str, object]) -> Hold:
    return Hold(
        id=str(kept["id"]),
        held=held,
        organization_id=None if kept["organization_id"] is None else str(kept["organization_id"]),
        since=datetime.fromtimestamp(float(str(kept["since"])), UTC),
        reason=str(kept["reason"]),
    )
