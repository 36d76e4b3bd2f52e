"""Audit events: who did what, when, from where and with what result; of one organization, and of all."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta

from identity.domain.audit import AuditEvent, AuditFilter, Result
from identity.domain.words import say
from identity.http import targets
from identity.plugins.console.asking_page import AskingPage
from identity.plugins.console.badges import Badge
from identity.plugins.console.console_page import CONSOLE, ConsolePage
from identity.plugins.console.event_parties import Parties
from identity.plugins.console.event_words import EVENT_WORDS, REASON_WORDS, SUBJECT_WORDS
from identity.plugins.console.holdings import Named
from identity.plugins.console.list_page import ListPage
from identity.plugins.console.places import Place
from identity.storage.paging import Page, PageRequest

SECTION = "audit-events"
FROM, TO, ACTOR, EVENT, OBJECT, RESULT = "from", "to", "actor", "event", "object", "result"

_RESULTS = {Result.SUCCESS: say("Done"), Result.REFUSED: say("Refused")}
_DAY = timedelta(days=1)


@dataclass(frozen=True)
class Row:
    """An event as the list shows it."""

    event: AuditEvent
    href: str
    what: str
    who: Named
    kind: str
    thing: Named
    result: Badge
    reason: str


class AuditEventList(AskingPage, ListPage):
    """One row an event, newest first."""

    template = "console/audit_events.html"
    section = SECTION
    fields = (FROM, TO, EVENT, RESULT, ACTOR, OBJECT)
    heading = say("Audit events")
    lead = say("What was done and what was refused. Events are never changed or deleted. Times are in UTC.")
    columns = (say("What"), say("When"), say("Who, where from"), say("Object"), say("Result"))
    has_state = False
    empty_title = say("No audit events yet")
    empty_text = say("Whatever is changed or refused here will be listed.")

    @property
    def organization_id(self) -> str | None:
        """Of which organization; None for all."""
        organization_id: str = self.context.value.id
        return organization_id

    def fetch(self, asked: PageRequest) -> Page[AuditEvent]:
        """The events that fit the filters; none if a filter cannot be understood."""
        wanted = self._wanted()
        if self.problems:
            return Page(())
        return self.listed(self.services.audit_trail.page(wanted, asked))

    def rows(self, found: Sequence[AuditEvent]) -> Sequence[Row]:
        """With the names of who acted and of what they acted on."""
        parties = Parties(self, found)
        return [
            Row(
                event=one,
                href=f"{CONSOLE}/audit-events/{one.id}",
                what=self.words.t(EVENT_WORDS.get(one.event, one.event)),
                who=parties.actor(one.actor),
                kind=parties.kind(one.object_kind),
                thing=parties.thing(one.object_kind, one.object_id),
                result=result_badge(one, self),
                reason=reason_words(one, self),
            )
            for one in found
        ]

    def filtered(self) -> bool:
        """True if a filter is given."""
        return bool(self.asked())

    def nothing_found(self, asked: PageRequest) -> str:
        """What to do about it."""
        if self.problems:
            return say("Correct the filters to see events.")
        return say("No event fits these filters. Remove one.")

    def filters(self) -> Mapping[str, object]:
        """What to choose from."""
        t = self.words.t
        events = [
            (
                t(words),
                [(subject, t("All of them")), *((name, t(said)) for name, said in _events_of(subject))],
            )
            for subject, words in SUBJECT_WORDS.items()
        ]
        return {"events": events, "results": [(one.value, t(words)) for one, words in _RESULTS.items()]}

    def _wanted(self) -> AuditFilter:
        asked = self.asked()
        since, last = self._day(FROM, asked), self._day(TO, asked)
        if since is not None and last is not None and last < since:
            self.problems[TO] = say("Choose a day that is not before the first one.")
        event = asked.get(EVENT, "")
        if event and event not in EVENT_WORDS and event not in SUBJECT_WORDS:
            self.problems[EVENT] = say("Choose one of the values offered.")
        result = asked.get(RESULT, "")
        if result and result not in set(Result):
            self.problems[RESULT] = say("Choose one of the values offered.")
        return AuditFilter(
            organization_id=self.organization_id,
            event=event,
            actor_id=self._actor(asked.get(ACTOR, "")),
            object_id=asked.get(OBJECT, ""),
            result=None if RESULT in self.problems or not result else Result(result),
            since=since,
            until=None if last is None else last + _DAY,
        )

    def _day(self, field: str, asked: Mapping[str, str]) -> datetime | None:
        text = asked.get(field)
        if text is None:
            return None
        try:
            # The day after the last one has no date.
            day = min(date.fromisoformat(text), date.max - _DAY)
        except ValueError:
            self.problems[field] = say("Enter a date such as 2027-12-31.")
            return None
        return datetime.combine(day, time(), UTC)

    def _actor(self, text: str) -> str:
        """An id; people know login names."""
        if "@" not in text:
            return text
        subject = self.services.storage.users.find_by_login_name(text)
        if subject is None or not self._sees(subject.organization.id):
            return text
        found: str = subject.user.id
        return found


class AllAuditEvents(AuditEventList):
    """Of all organizations and of the instance."""

    of_instance = True
    heading = say("All audit events")

    @property
    def organization_id(self) -> str | None:
        """All."""
        return None


@dataclass(frozen=True)
class Difference:
    """A field of an event's detail: before and after a change, or (``after`` alone) a fact."""

    field: str
    before: str
    after: str


class AuditEventPage(ConsolePage):
    """All about one event."""

    template = "console/audit_event.html"
    section = SECTION

    @property
    def event(self) -> AuditEvent:
        """Which one."""
        event: AuditEvent = self.context.value
        return event

    @property
    def of_instance(self) -> bool:  # type: ignore[override]
        """True if it is of no organization."""
        return self.event.organization_id is None

    def title(self) -> str:
        """What happened."""
        return EVENT_WORDS.get(self.event.event, self.event.event)

    def trail(self) -> Sequence[tuple[str, str]]:
        """Below the list."""
        if self.of_instance:
            return [(AllAuditEvents.heading, f"{CONSOLE}/{SECTION}")]
        return [(AuditEventList.heading, f"{self.root}/{SECTION}")]

    def show(self) -> Mapping[str, object]:
        """Every field."""
        event = self.event
        parties = Parties(self, [event])
        changes, facts = _detail(event)
        client_id = event.actor.client_id
        return {
            "event": event,
            "who": parties.actor(event.actor),
            # Service users, and applications that act for themselves, are their own clients.
            "client": None if client_id in (None, event.actor.id) else parties.party(client_id),
            "kind": parties.kind(event.object_kind),
            "thing": parties.thing(event.object_kind, event.object_id),
            "result": result_badge(event, self),
            "reason": reason_words(event, self),
            "changes": changes,
            "facts_told": facts,
        }


def result_badge(event: AuditEvent, page: ConsolePage) -> Badge:
    """Done, or refused."""
    kind = "danger" if event.result is Result.REFUSED else "success"
    return Badge(page.words.t(_RESULTS[event.result]), kind)


def reason_words(event: AuditEvent, page: ConsolePage) -> str:
    """Why it was refused, in words; empty where there is nothing to say."""
    reason = event.reason or ""
    return page.words.t(REASON_WORDS.get(reason, reason))


def _events_of(subject: str) -> list[tuple[str, str]]:
    return [(name, said) for name, said in EVENT_WORDS.items() if name.partition(".")[0] == subject]


def _detail(event: AuditEvent) -> tuple[list[Difference], list[Difference]]:
    """The changes and the plain facts among an event's detail."""
    changes, facts = [], []
    for name, value in event.detail.items():
        if isinstance(value, Mapping) and value.keys() == {"before", "after"}:
            changes += _differences(name, value["before"], value["after"])
        else:
            facts.append(Difference(name, "", _text(value)))
    return changes, facts


def _differences(name: str, before: object, after: object) -> list[Difference]:
    """A change; of a value with members, those that changed."""
    if isinstance(before, Mapping) and isinstance(after, Mapping):
        names = dict.fromkeys((*before, *after))
        return [
            one
            for part in names
            if before.get(part) != after.get(part)
            for one in _differences(f"{name}.{part}", before.get(part), after.get(part))
        ]
    return [Difference(name, _text(before), _text(after))]


def _text(value: object) -> str:
    if isinstance(value, str):
        return value
    return "" if value is None else json.dumps(value, ensure_ascii=False)


_ALL = f"/{SECTION}"

PLACES = (
    Place(f"/organizations/{{organization}}{_ALL}", AuditEventList, "audit_event.read", targets.organization),
    Place(_ALL, AllAuditEvents, "audit_event.read", targets.instance),
    Place(f"{_ALL}/{{audit_event}}", AuditEventPage, "audit_event.read", targets.audit_event),
)
