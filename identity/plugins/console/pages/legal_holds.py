"""Legal holds: all that there are; on the pages of users and organizations how each stands; placed and lifted."""

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from markupsafe import Markup
from pyramid.response import Response

from identity.domain.legal_holds import EVERYTHING, Held, Hold
from identity.domain.words import say
from identity.http import targets
from identity.lazily import lazily
from identity.pages.forms import Form
from identity.pages.wrapping import breakable
from identity.plugins.console.badges import Badge, Named
from identity.plugins.console.confirm_page import ConfirmPage
from identity.plugins.console.console_form import ConsoleForm
from identity.plugins.console.console_page import CONSOLE, ConsolePage
from identity.plugins.console.fields import Text
from identity.plugins.console.list_page import Cells, ListPage
from identity.plugins.console.places import Place, of_things
from identity.plugins.console.sections import Panel
from identity.plugins.console.things import ORGANIZATIONS, OfOrganization, OfThing, OfUser
from identity.services.commands.legal_holds import PlaceLegalHold
from identity.storage.paging import Page, PageRequest

SECTION = "instance/legal-holds"
_LIST = f"{CONSOLE}/{SECTION}"
_READ, _WRITE = "legal_hold.read", "legal_hold.write"

_KINDS = {Held.USER: say("User"), Held.ORGANIZATION: say("Organization"), Held.INSTANCE: say("Instance")}
_STAYS = say("Until it is lifted nobody is deleted who is held, and audit events, sessions and tokens of theirs stay.")


class LegalHoldList(ListPage):
    """All that there are, the oldest first."""

    section = SECTION
    of_instance = True
    title = say("Legal holds")
    lead = say("Who has to stay, with audit events, sessions and tokens, as long as a court or an inquiry needs them.")
    columns = (say("Held"), say("Kind"), say("Since"), say("Reason"))
    actions = True
    searchable = False
    empty_title = say("No legal holds")
    empty_text = say("They are placed on the pages of users and organizations.")

    def fetch(self, asked: PageRequest) -> Page[Hold]:
        """All at once: they are few."""
        return Page(tuple(self.services.legal_holds.all().values()))

    def rows(self, found: Sequence[Hold]) -> Sequence[Cells]:
        named = _named(self, found)
        return [
            (
                self.named(named[one.id]),
                Markup('<span class="nowrap">{}</span>').format(self.words.t(_KINDS[one.kind])),
                self.ui.when(one.since),
                one.reason,
                self.link(say("Lift"), f"{_LIST}/{one.id}/lift", what=named[one.id].name, small=True)
                if self.may(_WRITE)
                else "",
            )
            for one in found
        ]

    def filters(self) -> Mapping[str, object]:
        may = self.may(_WRITE) and EVERYTHING not in self.services.legal_holds.all()
        return {"beside": self.link(say("Hold everything …"), f"{_LIST}/everything") if may else ""}


def _named(page: ConsolePage, holds: Sequence[Hold]) -> Mapping[str, Named]:
    """What each holds, by the id of the hold."""
    storage = page.services.storage
    people = storage.users.find_subjects([one.held for one in holds if one.kind is Held.USER])
    organizations = storage.organizations.find_many([one.held for one in holds if one.kind is Held.ORGANIZATION])
    named = {}
    for one in holds:
        named[one.id] = Named(page.words.t("Everything") if one.kind is Held.INSTANCE else one.held)
        if one.held in people:
            subject = people[one.held]
            named[one.id] = Named(
                subject.user.display_name, f"{CONSOLE}/users/{one.held}", breakable(subject.login_name)
            )
        elif one.held in organizations:
            named[one.id] = Named(organizations[one.held].name, f"{ORGANIZATIONS}/{one.held}")
    return named


class LiftHold(ConfirmPage):
    """Asks before what is held may go, and leads to the page of that."""

    section = SECTION
    of_instance = True
    trail = ((LegalHoldList.title, _LIST),)
    title = say("Lift the legal hold on “{name}”?")
    label = say("Lift legal hold")
    keep = say("Keep the legal hold")

    @lazily
    def hold(self) -> Hold:
        """Which one. Raises NotFound."""
        return self.services.legal_holds.get(self.request.matchdict["legal_hold"])

    @property
    def names(self) -> Mapping[str, object]:
        return {"name": self._held.name}

    @lazily
    def _held(self) -> Named:
        return _named(self, [self.hold])[self.hold.id]

    @property
    def back(self) -> str:
        return self._held.href or _LIST

    @property
    def effects(self) -> Sequence[str]:
        return (
            say("It was placed on {day}: {reason}", day=self.ui.when(self.hold.since), reason=self.hold.reason),
            say("What is old enough is deleted, as the settings say, unless another hold keeps it."),
            say("Accounts that people asked to have deleted go when their time is over."),
        )

    def act(self) -> None:
        self.services.legal_holds.release(self.hold.id)


class _HoldForm(ConsoleForm):
    """Asks why something is to be held."""

    inputs = (
        Text(
            "reason",
            say("Reason"),
            say("Managers who read the audit trail see it."),
            missing=say("Say why."),
        ),
    )
    about = _STAYS
    label = say("Place legal hold")
    #: What is held.
    held: ClassVar[Held]

    @property
    def held_id(self) -> str | None:
        """Which one."""
        return None

    def submit(self, form: Form) -> Response:
        told = {**self.typed(form), "kind": self.held, "held_id": self.held_id}
        self.services.legal_holds.place(self.decoded(PlaceLegalHold, told))
        return self.redirect(self.done(self.back))


class HoldEverything(_HoldForm):
    """Holds all organizations, and what is of none."""

    section = SECTION
    of_instance = True
    held = Held.INSTANCE
    trail = LiftHold.trail
    title = say("Place a legal hold on everything?")


class PlaceHold(OfThing[Any], _HoldForm):
    """Holds a thing, whose page leads there."""

    at = "/legal-hold"
    title = say("Place a legal hold on “{name}”?")

    @classmethod
    def permission(cls) -> str:
        return _WRITE

    @property
    def held_id(self) -> str:
        return str(self.context.value.id)


def hold_badge(page: OfThing[Any], *above: str) -> Sequence[Badge]:
    """Whether the thing has to stay, by itself or with one of these above it."""
    held = not {page.context.value.id, *above, EVERYTHING}.isdisjoint(page.services.legal_holds.all())
    return [Badge(page.words.t("Legal hold"), "warning")] if held else []


def hold_panel(page: OfThing[Any], *above: str) -> Panel | None:
    """By which holds the thing has to stay, and the way to place or lift its own; nothing for whoever may not know."""
    if not page.may(_READ):
        return None
    holds, writes = page.services.legal_holds.all(), page.may(_WRITE)
    rows: list[tuple[str, str, Markup]] = []
    own = holds.get(page.context.value.id)
    if own is not None:
        lift = page.link(say("Lift …"), f"{_LIST}/{own.id}/lift") if writes else Markup()
        rows.append((_since(page, say("Held since {day}"), own), own.reason, lift))
    elif writes:
        place = page.link(say("Place …"), f"{page.href}{PlaceHold.at}")
        rows.append((say("Place a legal hold"), _STAYS, place))
    for one in (holds[key] for key in (*above, EVERYTHING) if key in holds):
        words = say("Everything is held since {day}")
        if one.kind is Held.ORGANIZATION:
            words = say("The whole organization is held since {day}")
        rows.append((_since(page, words, one), one.reason, Markup()))
    return Panel("legal-hold", say("Legal hold"), rows=rows) if rows else None


def _since(page: ConsolePage, words: str, hold: Hold) -> Markup:
    return page.words.t(words, day=page.ui.when(hold.since))


PLACES = (
    Place(f"/{SECTION}", LegalHoldList, _READ, targets.instance),
    Place(f"/{SECTION}/everything", HoldEverything, _WRITE, targets.instance),
    Place(f"/{SECTION}/{{legal_hold}}/lift", LiftHold, _WRITE, targets.instance),
    *of_things(PlaceHold.of(OfUser, held=Held.USER), PlaceHold.of(OfOrganization, held=Held.ORGANIZATION)),
)
