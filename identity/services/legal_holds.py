"""Legal holds: data that must not be deleted until the hold is released."""

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
#: Each batch of a purge reads all of them.
MAX_HOLDS = 1000


class LegalHoldService(Service):
    """All holds are in one record, since there are few."""

    def list_holds(self) -> Mapping[str, LegalHold]:
        """All holds by their target, oldest first."""
        with self._look() as storage:
            record = storage.records.find(CORE_NAMESPACE, _KIND, _KEY)
        return {} if record is None else _holds(record)

    def get(self, hold_id: str) -> LegalHold:
        """Raises NotFound."""
        legal_hold = next((hold for hold in self.list_holds().values() if hold.id == hold_id), None)
        return self._require_found(legal_hold, "legal hold", hold_id)

    def list_holds_on_user(self, user: User) -> tuple[LegalHold, ...]:
        """The holds that keep the account: its own, that of its organization, that of the instance."""
        return _over(user, self.list_holds())

    def refuse_user_removal(self, user: User) -> None:
        """Raise Conflict if a hold keeps the account. No hold can be placed until the removal has ended."""
        if _over(user, _holds(self._record(locked=True))):
            raise Conflict(gettext_lazy("This account is under a legal hold and cannot be deleted."))

    def refuse_organization_removal(self, organization_id: str) -> None:
        """The same for an organization and all of its users."""
        for hold in _holds(self._record(locked=True)).values():
            if hold.organization_id in (organization_id, None):
                raise Conflict(
                    gettext_lazy("This organization, or one of its users, is under a legal hold: it cannot be deleted.")
                )

    def create(self, command: CreateLegalHold) -> LegalHold:
        """Place a hold on a user, an organization or the instance. Raises Invalid for an unknown target; Conflict if it
        has a hold already, or if there are too many holds."""
        target_id, organization_id = self._named(command)
        record = self._record()
        if target_id in record.value:
            raise Conflict(gettext_lazy("This is already on hold."))
        if len(record.value) >= MAX_HOLDS:
            raise Conflict(
                gettext_lazy(
                    "There are {n} legal holds. Place holds on whole organizations, or on everything.", n=MAX_HOLDS
                )
            )
        hold = LegalHold(
            id=new_id(), target_id=target_id, organization_id=organization_id, since=self._now, reason=command.reason
        )
        self._keep(record, {**record.value, target_id: _hold_to_json(hold)})
        # Again, after waiting for a concurrent removal.
        self._named(command)
        self._record_change("legal_hold.placed", hold)
        return hold

    def release(self, hold_id: str) -> None:
        """Release the hold; the settings decide when the data is deleted. Raises NotFound."""
        hold = self.get(hold_id)
        record = self._record()
        if record.value.get(hold.target_id, {}).get("id") != hold_id:
            raise NotFound("legal hold", hold_id)
        self._keep(record, {target_id: item for target_id, item in record.value.items() if target_id != hold.target_id})
        self._record_change("legal_hold.released", hold)

    def _named(self, command: CreateLegalHold) -> tuple[str, str | None]:
        """The id of the target, and its organization. Raises Invalid."""
        held_id = command.held_id or ""
        if command.kind is LegalHoldKind.INSTANCE:
            if held_id:
                raise Invalid({"held_id": gettext_lazy("Everything is on hold: leave this empty.")})
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
        """The record of all holds, created on first use."""
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
        """Record the event. A hold on a user is not an event of that user, who could read it with its reason."""
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
