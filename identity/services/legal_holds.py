"""Legal holds: what is not to go, as long as somebody says so."""

from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime

from identity.crypto.secrets import new_id, token_digest
from identity.domain.errors import Conflict, Invalid, NotFound
from identity.domain.legal_holds import ALL_TARGETS, LegalHold, LegalHoldKind
from identity.domain.messages import gettext_lazy
from identity.domain.records import CORE_NAMESPACE, Record
from identity.domain.users import HumanUser, User
from identity.services.base import Service, translate_storage_errors
from identity.services.commands.legal_holds import CreateLegalHold

_KIND = "legal_holds"
_KEY = token_digest("all")
#: All are read at once, by each batch of a purge.
MAX_HOLDS = 1000


class LegalHoldService(Service):
    """Holds by what they hold. They stand in one record, of which there are few."""

    def list_holds(self) -> Mapping[str, LegalHold]:
        """Every hold there is, the oldest first."""
        with self._look() as storage:
            record = storage.records.find(CORE_NAMESPACE, _KIND, _KEY)
        return {} if record is None else _holds(record)

    def get(self, hold_id: str) -> LegalHold:
        """The hold. Raises NotFound."""
        legal_hold = next((hold for hold in self.list_holds().values() if hold.id == hold_id), None)
        return self._require_found(legal_hold, "legal hold", hold_id)

    def list_holds_on_user(self, user: User) -> tuple[LegalHold, ...]:
        """The holds by which the account stays: its own, that of its organization, that of everything."""
        return _over(user, self.list_holds())

    def refuse_user_removal(self, user: User) -> None:
        """Raise Conflict if the account has to stay. Nobody can place a hold before it is gone."""
        if _over(user, _holds(self._record(locked=True))):
            raise Conflict(gettext_lazy("This account is under a legal hold and cannot be deleted."))

    def refuse_organization_removal(self, organization_id: str) -> None:
        """The same for an organization and everybody of it."""
        for hold in _holds(self._record(locked=True)).values():
            if hold.organization_id in (organization_id, None):
                raise Conflict(
                    gettext_lazy("This organization, or somebody of it, is under a legal hold: it cannot be deleted.")
                )

    def create(self, command: CreateLegalHold) -> LegalHold:
        """Hold a person, an organization or everything.

        Raises Invalid if there is no such thing; Conflict if it is held already, or if there are very many holds.
        """
        target_id, organization_id = self._named(command)
        record = self._record()
        if target_id in record.value:
            raise Conflict(gettext_lazy("This is held already."))
        if len(record.value) >= MAX_HOLDS:
            raise Conflict(gettext_lazy("There are {n} legal holds. Hold whole organizations, or all.", n=MAX_HOLDS))
        hold = LegalHold(
            id=new_id(), target_id=target_id, organization_id=organization_id, since=self._now, reason=command.reason
        )
        self._keep(record, {**record.value, target_id: _hold_to_json(hold)})
        # Whoever was just removing it has been waited for.
        self._named(command)
        self._record_change("legal_hold.placed", hold)
        return hold

    def release(self, hold_id: str) -> None:
        """Let go what it holds, as the settings say. Raises NotFound."""
        hold = self.get(hold_id)
        record = self._record()
        if record.value.get(hold.target_id, {}).get("id") != hold_id:
            raise NotFound("legal hold", hold_id)
        self._keep(record, {target_id: item for target_id, item in record.value.items() if target_id != hold.target_id})
        self._record_change("legal_hold.released", hold)

    def _named(self, command: CreateLegalHold) -> tuple[str, str | None]:
        """What is to be held, and of which organization it is. Raises Invalid."""
        held_id = command.held_id or ""
        if command.kind is LegalHoldKind.INSTANCE:
            if held_id:
                raise Invalid({"held_id": gettext_lazy("Everything is held: name nothing.")})
            return ALL_TARGETS, None
        if command.kind is LegalHoldKind.ORGANIZATION:
            organization = self._storage.organizations.find(held_id)
            if organization is None:
                raise Invalid({"held_id": gettext_lazy("There is no such organization.")})
            return organization.id, organization.id
        user = self._storage.users.find(held_id)
        if not isinstance(user, HumanUser):
            raise Invalid({"held_id": gettext_lazy("There is no such user.")})
        return user.id, user.organization_id

    def _record(self, *, locked: bool = False) -> Record:
        """What the holds stand in, made by whoever needs it first."""
        record = self._storage.records.find(CORE_NAMESPACE, _KIND, _KEY, locked=locked)
        if record is not None:
            return record
        empty = Record(plugin=CORE_NAMESPACE, kind=_KIND, key=_KEY, value={}, created_at=self._now)
        if self._storage.records.add(empty) is None:
            return empty
        return self._require_found(
            self._storage.records.find(CORE_NAMESPACE, _KIND, _KEY, locked=locked), "legal_hold", _KIND
        )

    def _keep(self, record: Record, holds: Mapping[str, object]) -> None:
        with translate_storage_errors("legal_hold", _KIND):
            self._storage.records.replace(replace(record, value=holds, version=record.version + 1))

    def _record_change(self, event: str, hold: LegalHold) -> None:
        """Tell the trail. One on a person is no event about them: people read those of themselves, with the reason."""
        kind, object_id, about = hold.kind.value, hold.organization_id, {}
        if hold.kind is LegalHoldKind.USER:
            kind, object_id, about = "legal_hold", hold.id, {"user_id": hold.target_id}
        detail = {**about, "reason": hold.reason}
        self._audit.record(event, kind=kind, id=object_id, organization_id=hold.organization_id, detail=detail)


def _holds(record: Record) -> Mapping[str, LegalHold]:
    holds = [_hold(target_id, item) for target_id, item in record.value.items()]
    return {hold.target_id: hold for hold in sorted(holds, key=lambda hold: hold.id)}


def _over(user: User, holds: Mapping[str, LegalHold]) -> tuple[LegalHold, ...]:
    return tuple(holds[item] for item in (user.id, user.organization_id, ALL_TARGETS) if item in holds)


def _hold_to_json(hold: LegalHold) -> dict[str, object]:
    return {
        "id": hold.id,
        "organization_id": hold.organization_id,
        "since": int(hold.since.timestamp()),
        "reason": hold.reason,
    }


def _hold(target_id: str, values: Mapping[str, object]) -> LegalHold:
    return LegalHold(
        id=str(values["id"]),
        target_id=target_id,
        organization_id=None if values["organization_id"] is None else str(values["organization_id"]),
        since=datetime.fromtimestamp(float(str(values["since"])), UTC),
        reason=str(values["reason"]),
    )
