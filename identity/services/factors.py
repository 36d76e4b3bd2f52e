"""Factors: what users have enrolled, for every factor that a plugin offers."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from identity.crypto.secrets import new_id
from identity.domain.enrolments import FACTOR_RECORD_KIND, Enrolment
from identity.domain.errors import Conflict, Invalid, NotFound
from identity.domain.messages import gettext_lazy
from identity.domain.names import display_name_error
from identity.domain.records import CORE_NAMESPACE, Record
from identity.domain.users import HumanUser, Subject
from identity.services.base import Service
from identity.services.records import RecordService
from identity.services.remembered_browsers import RememberedBrowserService

#: The maximum number of a user's enrolments of one factor.
MAX_ENROLMENTS = 20


@dataclass(eq=False, repr=False)
class FactorService(Service):
    """Each enrolment is a sealed record of its user. The factor defines its content."""

    _remembered_browsers: RememberedBrowserService
    _records: RecordService

    def list_enrolments(self, user_id: str, factor: str | None = None) -> tuple[Enrolment, ...]:
        """The user's enrolments, of one factor or all, newest first."""
        enrolments = (_enrolment(record) for record in self._records.list_by_owner(FACTOR_RECORD_KIND, user_id=user_id))
        return tuple(enrolment for enrolment in enrolments if factor in (None, enrolment.factor))

    def find_by_key(self, factor: str, key: str) -> Enrolment | None:
        """The enrolment with this key, of any user."""
        record = self._records.find(FACTOR_RECORD_KIND, _key(factor, key))
        return None if record is None else _enrolment(record)

    def get(self, user_id: str, enrolment_id: str) -> Enrolment:
        """The user's own enrolment. Raises NotFound."""
        for enrolment in self.list_enrolments(user_id):
            if enrolment.id == enrolment_id:
                return enrolment
        raise NotFound("factor", enrolment_id)

    def enrol(
        self, subject: Subject, factor: str, value: Mapping[str, Any], *, name: str = "", key: str | None = None
    ) -> Enrolment:
        """Add an enrolment. ``key`` is unique in the instance among those of the factor, by default a new one. Raises
        Conflict if the key is taken or the user has the maximum number; NotFound if the user was removed."""
        if len(self.list_enrolments(subject.user.id, factor)) >= MAX_ENROLMENTS:
            raise Conflict(gettext_lazy("The maximum number is reached. Remove one first."))
        id_ = new_id()
        key = _key(factor, key or id_)
        content = {"id": id_, "factor": factor, "name": name, "used_at": None, "value": dict(value)}
        if self._records.add(FACTOR_RECORD_KIND, key, content, user_id=subject.user.id, seal=True) is not None:
            raise Conflict(gettext_lazy("This is already set up."))
        record = self._records.find(FACTOR_RECORD_KIND, key)
        if record is None:
            raise NotFound("user", subject.user.id)
        self._record_event("factor.added", subject, {"factor": factor, "name": name})
        return _enrolment(record)

    def update_after_use(self, enrolment: Enrolment, value: Mapping[str, Any]) -> Enrolment:
        """Record that it was used just now, with its new content. Raises Conflict if it was used or changed since it
        was read, so that only one of several racing proofs counts; NotFound."""
        return self._replaced(enrolment, value=dict(value), used_at=int(self._now.timestamp()))

    def rename(self, subject: Subject, enrolment_id: str, name: str) -> Enrolment:
        """Raises NotFound, Conflict, Invalid."""
        problem = display_name_error(name)
        if problem is not None:
            raise Invalid({"name": problem})
        before = self.get(subject.user.id, enrolment_id)
        if before.name == name:
            return before
        after = self._replaced(before, name=name)
        self._record_event("factor.changed", subject, {"factor": after.factor, "name": after.name})
        return after

    def remove(self, subject: Subject, enrolment_id: str) -> Enrolment:
        """Remove the enrolment. Remembered browsers are asked again. Raises NotFound."""
        removed = self.get(subject.user.id, enrolment_id)
        if not self._storage.records.delete(CORE_NAMESPACE, FACTOR_RECORD_KIND, removed.record.key):
            raise NotFound("factor", enrolment_id)
        self._remembered_browsers.forget_all(subject.user.id)
        self._record_event("factor.removed", subject, {"factor": removed.factor, "name": removed.name})
        return removed

    def replace_all(self, subject: Subject, factor: str, value: Mapping[str, Any], *, name: str = "") -> Enrolment:
        """Replace all of the user's enrolments of this factor by one. Raises NotFound."""
        for enrolment in self.list_enrolments(subject.user.id, factor):
            self._storage.records.delete(CORE_NAMESPACE, FACTOR_RECORD_KIND, enrolment.record.key)
        return self.enrol(subject, factor, value, name=name)

    def remove_all(self, user_id: str) -> int:
        """Remove all of a user's enrolments, without reading them; returns their number. Raises NotFound."""
        subject = self._get_subject(user_id)
        if not isinstance(subject.user, HumanUser):
            raise NotFound("user", user_id)
        removed = self._records.delete_by_owner(FACTOR_RECORD_KIND, user_id=user_id)
        self._remembered_browsers.forget_all(user_id)
        if removed:
            self._record_about("factor.reset", subject, {"factors": removed})
        return removed

    def record_suspected_clone(self, subject: Subject, enrolment: Enrolment) -> None:
        self._record_about("factor.suspected", subject, {"factor": enrolment.factor, "name": enrolment.name})

    def record_backup_code_used(self, enrolment: Enrolment, subject: Subject, left: int) -> None:
        """Record that a backup code was used, and how many are left."""
        self._record_event("factor.used", subject, {"factor": enrolment.factor, "left": left})

    def _replaced(self, enrolment: Enrolment, **changed: Any) -> Enrolment:
        content = {**enrolment.record.value, **changed}
        return _enrolment(self._records.replace(enrolment.record, content))

    def _record_event(self, event: str, subject: Subject, detail: Mapping[str, object]) -> None:
        """Record an event with the user as its actor, even if they are not signed in yet."""
        with self._audit.acting_as(subject.user.id):
            self._record_about(event, subject, detail)


def _key(factor: str, key: str) -> str:
    return f"{factor}\n{key}"


def _enrolment(record: Record) -> Enrolment:
    content = record.value
    used_at = content["used_at"]
    return Enrolment(
        id=content["id"],
        factor=content["factor"],
        user_id=record.user_id or "",
        name=content["name"],
        added_at=record.created_at,
        last_used_at=None if used_at is None else datetime.fromtimestamp(used_at, UTC),
        value=content["value"],
        record=record,
    )
