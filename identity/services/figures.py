"""Figures: what happened per day, in an organization or in the whole instance."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date, timedelta

from identity.crypto.secrets import is_client_id, is_id, new_id
from identity.domain.application_requests import ApplicationRequest
from identity.domain.applications import Application
from identity.domain.figures import ACTIVE_DAYS, WHOLE_INSTANCE, FigureKey, FigureKind, PeopleCount, utc_day
from identity.domain.permissions import Resource
from identity.domain.users import Subject
from identity.services.access_control import AccessControl, Principal
from identity.services.base import Service

MAX_DAYS = 400
_RETENTION = timedelta(days=MAX_DAYS)
_LOG_RETENTION = timedelta(days=30)
_MOST_CLIENTS = 100
_FLOWS = (FigureKind.SIGN_INS, FigureKind.REFUSED_SIGN_INS, FigureKind.NEW_PEOPLE, FigureKind.TOKENS)
_LEVELS = (FigureKind.PEOPLE, FigureKind.ACTIVE_PEOPLE, FigureKind.PROTECTED_PEOPLE)


@dataclass(frozen=True, slots=True, kw_only=True)
class DailyFigures:
    """The figures of one day. Those about people are None if they were not counted on that day."""

    day: date
    sign_ins: int
    refused_sign_ins: int
    new_people: int
    tokens: int
    people: int | None
    active_people: int | None
    people_with_second_factor: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientTokens:
    """How often an application or a service user got tokens."""

    client: Application | Subject
    tokens: int

    @property
    def client_id(self) -> str:
        return self.client.id if isinstance(self.client, Application) else self.client.user.id

    @property
    def name(self) -> str:
        return self.client.name if isinstance(self.client, Application) else self.client.user.display_name


@dataclass(eq=False, repr=False)
class FigureService(Service):
    """Reads one row per day and kind, whatever the number of people."""

    _access: AccessControl

    def list_daily(self, organization_id: str | None, days: int) -> Sequence[DailyFigures]:
        """Each of the last ``days`` days, today included, oldest first; None: of the whole instance."""
        today = utc_day(self._now)
        first = today - timedelta(days=days - 1)
        owner = organization_id or WHOLE_INSTANCE
        numbers = self._storage.figures.list_daily(owner, (*_FLOWS, *_LEVELS), since=first)
        return [
            DailyFigures(
                day=day,
                sign_ins=numbers.get((FigureKind.SIGN_INS, day), 0),
                refused_sign_ins=numbers.get((FigureKind.REFUSED_SIGN_INS, day), 0),
                new_people=numbers.get((FigureKind.NEW_PEOPLE, day), 0),
                tokens=numbers.get((FigureKind.TOKENS, day), 0),
                people=numbers.get((FigureKind.PEOPLE, day)),
                active_people=numbers.get((FigureKind.ACTIVE_PEOPLE, day)),
                people_with_second_factor=numbers.get((FigureKind.PROTECTED_PEOPLE, day)),
            )
            for day in (first + timedelta(days=number) for number in range(days))
        ]

    def list_tokens_by_client(
        self, organization_id: str | None, days: int, *, principal: Principal
    ) -> Sequence[ClientTokens]:
        """The applications and service users that got tokens in the last ``days`` days most often, as far as the
        principal may read them."""
        since = utc_day(self._now) - timedelta(days=days - 1)
        found = self._storage.figures.list_by_object(
            organization_id or WHOLE_INSTANCE, FigureKind.TOKENS, since=since, limit=_MOST_CLIENTS
        )
        resource = Resource.INSTANCE if organization_id is None else Resource.of_organization(organization_id)
        ids = [client_id for client_id, _ in found]
        clients: dict[str, Application | Subject] = {}
        if self._access.is_permitted(principal, "application.read", resource):
            applications = self._storage.applications.find_many([id_ for id_ in ids if is_client_id(id_)])
            projects = self._storage.projects.find_many({item.project_id for item in applications.values()})
            visible = {project.id for project in self._access.filter_visible(principal, projects.values())}
            clients |= {item.id: item for item in applications.values() if item.project_id in visible}
        if self._access.is_permitted(principal, "service_user.read", resource):
            subjects = self._storage.users.find_subjects([id_ for id_ in ids if is_id(id_)])
            clients |= {item.user.id: item for item in self._access.filter_visible(principal, subjects.values())}
        return [ClientTokens(client=clients[id_], tokens=tokens) for id_, tokens in found if id_ in clients]

    def list_application_requests(self, application_id: str) -> Sequence[ApplicationRequest]:
        """The latest requests of the application, latest first."""
        return self._storage.application_requests.list_for_application(application_id)

    def log_message(self, application_id: str, name: str, *, user_id: str | None, problem: str = "") -> None:
        """Log a message of the service to the application among its requests."""
        message = ApplicationRequest(
            id=new_id(),
            application_id=application_id,
            at=self._now,
            endpoint=name,
            error="not_delivered" if problem else "",
            reason=problem,
            user_id=user_id,
        )
        self._storage.application_requests.add([message])

    def find_changed_levels(self) -> Mapping[FigureKey, int]:
        """Today's numbers of people that differ from those stored. It reads all people."""
        today = utc_day(self._now)
        counted: dict[FigureKey, int] = {}
        whole = PeopleCount(organization_id=WHOLE_INSTANCE, people=0, active=0, protected=0)
        counts = self._storage.figures.count_people(active_since=self._now - timedelta(days=ACTIVE_DAYS))
        for count in counts:
            whole = PeopleCount(
                organization_id=WHOLE_INSTANCE,
                people=whole.people + count.people,
                active=whole.active + count.active,
                protected=whole.protected + count.protected,
            )
        for count in (*counts, whole):
            for kind, number in zip(_LEVELS, (count.people, count.active, count.protected), strict=True):
                counted[FigureKey(organization_id=count.organization_id, kind=kind, day=today)] = number
        stored = self._storage.figures.list_on(today, _LEVELS)
        removed = {key: 0 for key in stored if key not in counted}
        return {key: number for key, number in (counted | removed).items() if stored.get(key) != number}

    def remove_old(self) -> int:
        """Delete figures after 400 days, and logged requests after 30; returns their number."""
        figures = self._storage.figures.delete_before(utc_day(self._now - _RETENTION))
        return figures + self._storage.application_requests.delete_before(self._now - _LOG_RETENTION)
