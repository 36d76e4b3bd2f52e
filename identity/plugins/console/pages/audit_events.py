"""Audit events: who did what, when, from where and with what result; of one organization, and of all."""

import json
from collections.abc import Mapping, Sequence
from datetime import UTC, date, datetime, time, timedelta
from urllib.parse import urlencode

from markupsafe import Markup

from identity.crypto.secrets import is_id
from identity.domain.audit import ERASED, OTHER_ORGANIZATION, AuditEvent, AuditFilter, Result
from identity.domain.names import name_key
from identity.domain.words import say
from identity.http import targets
from identity.http.endpoints import context_of
from identity.http.lists import LONGEST_QUERY
from identity.pages.event_words import EVENT_WORDS, REASON_WORDS, SUBJECT_WORDS, factor_words
from identity.plugins.console.asking_page import AskingPage
from identity.plugins.console.badges import Badge, Named
from identity.plugins.console.console_page import CONSOLE, ConsolePage, Trail
from identity.plugins.console.event_parties import Parties
from identity.plugins.console.list_page import Cells, ListPage
from identity.plugins.console.places import Place
from identity.plugins.console.sections import Facts, Note, Panel, Table
from identity.storage.paging import Page, PageRequest

SECTION = "audit-events"
FROM, TO, ACTOR, EVENT, OBJECT, RESULT = "from", "to", "actor", "event", "object", "result"
REQUEST = "request"

_RESULTS = {Result.SUCCESS: say("Done"), Result.REFUSED: say("Refused")}
_DAY = timedelta(days=1)
#: How many users are looked through for the one of a name.
_NAMESAKES = 50
#: What a refusal tells of an address that was sent, and where the registered ones stand.
_ADDRESSES = {"redirect_uri": "redirect_uris", "post_logout_redirect_uri": "post_logout_redirect_uris"}
_FORGOTTEN = Note(say("This person is deleted. What the event told of them is erased."), faint=True)


class AuditEventList(AskingPage, ListPage):
    """One row an event, newest first."""

    template = "console/audit_events.html"
    section = SECTION
    fields = (FROM, TO, EVENT, RESULT, ACTOR, OBJECT, REQUEST)
    title = say("Audit events")
    lead = say("What was done and what was refused, as it was written then. Times are in UTC.")
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

    def rows(self, found: Sequence[AuditEvent]) -> Sequence[Cells]:
        parties, ui = Parties(self, found), self.ui
        rows = []
        for one in found:
            kind, thing = parties.kind(one.object_kind), parties.thing(one.object_kind, one.object_id)
            what = self.words.t(EVENT_WORDS.get(one.event, one.event))
            rows.append(
                (
                    ui.named(what, f"{CONSOLE}/{SECTION}/{one.id}", self._about(one)),
                    ui.moment(one.at),
                    self._above(self.linked(parties.actor(one)), one.actor.client_address or ""),
                    self._above(self.linked(thing), kind if thing.name != kind else ""),
                    self._above(self.badge(result_badge(one, self)), reason_words(one, self)),
                )
            )
        return rows

    def _about(self, event: AuditEvent) -> str:
        factor = factor_words(event, context_of(self.request).protocol.factors, self.words)
        return " · ".join(filter(None, (event.event, factor)))

    def _above(self, words: Markup, below: str) -> Markup:
        return words + self.ui.below(below) if below else words

    def filtered(self) -> bool:
        return bool(self.asked())

    def nothing_found(self, asked: PageRequest) -> str:
        if self.problems:
            return say("Correct the filters to see events.")
        return say("No event fits these filters. Remove one.")

    def filters(self) -> Mapping[str, object]:
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
            actor_id=self._party(ACTOR, asked),
            object_id=self._party(OBJECT, asked),
            request_id=asked.get(REQUEST, ""),
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

    def _party(self, field: str, asked: Mapping[str, str]) -> str:
        """The id that is meant: it stands there, or the login name or the name of a user does."""
        text = asked.get(field, "")
        if not text or is_id(text):
            return text
        users = self.services.storage.users
        subject = users.find_by_login_name(text) if "@" in text else None
        if subject is not None and self._sees(subject.organization.id):
            found: str = subject.user.id
            return found
        if not self.may("user.read") or len(text) > LONGEST_QUERY or not text.isprintable():
            return text
        found_by_name = users.page(self.organization_id, None, PageRequest(limit=_NAMESAKES, query=text)).items
        exact = [one for one in found_by_name if name_key(text) in map(name_key, (one.display_name, one.user_name))]
        meant = exact or found_by_name
        if len(meant) > 1:
            self.problems[field] = say("Several users have this name. Enter the login name.")
        # Applications, keys and whatever is gone by now go by ids alone.
        return meant[0].id if len(meant) == 1 else text


class AllAuditEvents(AuditEventList):
    """Of all organizations and of the instance."""

    of_instance = True
    title = say("All audit events")

    @property
    def organization_id(self) -> str | None:
        return None


class AuditEventPage(ConsolePage):
    """All about one event."""

    template = "console/show.html"
    section = SECTION

    @property
    def event(self) -> AuditEvent:
        """Which one."""
        event: AuditEvent = self.context.value
        return event

    @property
    def of_instance(self) -> bool:  # type: ignore[override]
        return self.event.organization_id is None

    @property
    def title(self) -> str:
        return EVENT_WORDS.get(self.event.event, self.event.event)

    @property
    def trail(self) -> Trail:
        if self.of_instance:
            return [(AllAuditEvents.title, f"{CONSOLE}/{SECTION}")]
        return [(AuditEventList.title, f"{self.root}/{SECTION}")]

    def show(self) -> Mapping[str, object]:
        erased = self.event.detail == ERASED
        changes, told = ([], []) if erased else _detail(self.event)
        columns = (say("Field"), say("Before"), say("After"))
        sections = [
            Table("changes", say("What changed"), columns=columns, rows=self._cells(changes)),
            Table("detail", say("Detail"), columns=(say("Field"), say("Value")), rows=self._cells(told)),
            self._registered(),
        ]
        return {
            "lead": [self.ui.code(self.event.event)],
            "badges": [result_badge(self.event, self)],
            "actions": (),
            "facts": self._facts(),
            "sections_of": [_FORGOTTEN] if erased else [one for one in sections if one.rows],
            "said": self.said,
        }

    def _registered(self) -> Table:
        """The addresses of which one would have been taken, where one was sent that is not registered."""
        sent = next((name for name in _ADDRESSES if name in self.event.detail), "")
        application = self.services.storage.applications.find(self.event.object_id or "") if sent else None
        uris = () if application is None else getattr(application, _ADDRESSES[sent])
        rows = [(self.ui.code(uri),) for uri in uris]
        return Table("registered", say("Registered addresses"), columns=(say("Address"),), rows=rows)

    def _facts(self) -> Facts:
        event, actor, parties, ui = self.event, self.event.actor, Parties(self, [self.event]), self.ui
        who, thing = parties.actor(event), parties.thing(event.object_kind, event.object_id)
        # Service users, and applications that act for themselves, are their own clients.
        client = None if actor.client_id in (None, actor.id) else parties.party(str(actor.client_id))
        here = self.organization if event.organization_id else None

        def identifier(of: str | None, named: Named | None = None) -> Markup:
            """Left out where it is what the thing is called anyway."""
            return ui.identifier(of) if of and (named is None or named.name != of) else Markup()

        return [
            (say("When"), ui.moment(event.at)),
            (say("Reason"), reason_words(event, self)),
            (say("Who"), self.linked(who)),
            (say("Id of who acted"), identifier(actor.id, who)),
            (say("Application"), "" if client is None else self.linked(client)),
            (say("Client id"), identifier(actor.client_id, client) if client else ""),
            (say("Session"), identifier(actor.session_id)),
            (say("Where from"), actor.client_address or say("Not known")),
            (say("Kind of object"), parties.kind(event.object_kind)),
            (say("Object"), self.linked(thing) if event.object_id else ""),
            (say("Id of the object"), identifier(event.object_id, thing)),
            (say("Organization"), ui.link(here.name, self.root) if here else ""),
            (say("Other organization"), parties.other_organization(event)),
            (say("Request id"), identifier(actor.request_id)),
            (say("Event id"), identifier(event.id)),
        ]

    def _cells(self, rows: Sequence[Sequence[str]]) -> Sequence[Cells]:
        empty = self.faint(say("Empty"))
        return [(self.ui.code(name), *(value or empty for value in values)) for name, *values in rows]


def events_panel(page: ConsolePage, user_id: str) -> Panel | None:
    """The ways from a user's page to what they did, and to what was done to them, their roles and keys included."""
    if not page.may("audit_event.read"):
        return None
    href = f"{page.root}/{SECTION}"
    ways = [
        (say("Done to this user"), say("Sign-ins, changes, and roles that were given or taken."), OBJECT),
        (say("Done by this user"), say("Changes that they made in this organization."), ACTOR),
    ]
    rows = [
        (title, text, page.link(say("Show"), f"{href}?{urlencode({by: user_id})}", what=title))
        for title, text, by in ways
    ]
    return Panel(SECTION, AuditEventList.title, rows=rows)


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


def _detail(event: AuditEvent) -> tuple[list[Sequence[str]], list[Sequence[str]]]:
    """The changes (field, before, after) and the plain facts (field, value) among an event's detail."""
    changes: list[Sequence[str]] = []
    facts: list[Sequence[str]] = []
    for name, value in event.detail.items():
        if name == OTHER_ORGANIZATION:
            continue
        if isinstance(value, Mapping) and value.keys() == {"before", "after"}:
            changes += _differences(name, value["before"], value["after"])
        else:
            facts.append((name, _text(value)))
    return changes, facts


def _differences(name: str, before: object, after: object) -> list[Sequence[str]]:
    """A change; of a value with members, those that changed."""
    if isinstance(before, Mapping) and isinstance(after, Mapping):
        names = dict.fromkeys((*before, *after))
        return [
            one
            for part in names
            if before.get(part) != after.get(part)
            for one in _differences(f"{name}.{part}", before.get(part), after.get(part))
        ]
    return [(name, _text(before), _text(after))]


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
