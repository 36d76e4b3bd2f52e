"""Users: people's accounts: list, make, look at, change, deactivate and delete."""

import logging
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from markupsafe import Markup
from pyramid.response import Response

from identity.domain.attempts import MOST_ATTEMPTS
from identity.domain.effects import Effects
from identity.domain.sessions import Session
from identity.domain.users import HumanUser, Subject
from identity.domain.words import say
from identity.http import targets
from identity.pages.devices import device
from identity.pages.forms import VERSION, Form
from identity.pages.signed_in_page import version_of
from identity.pages.translation import LANGUAGE_NAMES
from identity.plugins.console.badges import Badge
from identity.plugins.console.confirm_page import ConfirmPage, DeactivatePage, ReactivatePage
from identity.plugins.console.console_page import CONSOLE, ConsoleForm, ConsolePage, Link
from identity.plugins.console.effect_words import effect_words
from identity.plugins.console.holdings import FEW, held_grants, held_roles
from identity.plugins.console.list_page import ListPage
from identity.plugins.console.places import Place
from identity.plugins.console.user_section import UserSection
from identity.services.commands.users import ChangeHumanUser
from identity.services.users import UserState
from identity.storage.paging import Page, PageRequest
from identity.storage.stores.users import UserKind

log = logging.getLogger(__name__)

SECTION = "users"

#: What managers change of a person: who it is and how to reach them. The rest is said on the person's own pages.
_NAMES = ("user_name", "given_name", "family_name")
_PROFILE = ("display_name", "nickname", "email", "phone", "locale", "zoneinfo")

#: What is said of an empty field tells which one it is.
MISSING = {
    "user_name": say("Enter a user name."),
    "given_name": say("Enter a given name."),
    "family_name": say("Enter a family name."),
}

_STATES = {
    UserState.ACTIVE: say("Active"),
    UserState.MUST_CHANGE_PASSWORD: say("Must change password"),
    UserState.INVITED: say("Invited"),
    UserState.DEACTIVATED: say("Deactivated"),
}


@dataclass(frozen=True)
class Row:
    """A person as the list shows them."""

    user: HumanUser
    login_name: str
    href: str
    state: Badge


class UserList(ListPage):
    """One row a person, by user name."""

    template = "console/users.html"
    section = SECTION
    heading = say("Users")
    lead = say("People who sign in.")
    columns = (say("Name"), say("Login name"), say("Email"), say("State"), say("Last sign-in"), say("Created"))
    orders = (
        ("user_name", say("Login name")),
        ("display_name", say("Name")),
        ("email", say("Email")),
        ("last_sign_in_at", say("Last sign-in")),
        ("created_at", say("Created")),
    )
    empty_title = say("No users yet")
    empty_text = say("People who sign in. Create one and hand over the link.")

    def fetch(self, asked: PageRequest) -> Page[Any]:
        """People of the organization."""
        found: Page[Any] = self.services.storage.users.page(self.context.value.id, UserKind.HUMAN, asked)
        return found

    def rows(self, found: Sequence[HumanUser]) -> Sequence[Row]:
        """With their states."""
        states = self.services.users.states(found)
        return [
            Row(
                user=one,
                login_name=Subject(one, self.context.value).login_name,
                href=f"{CONSOLE}/{SECTION}/{one.id}",
                state=user_badge(states[one.id], self),
            )
            for one in found
        ]

    def new(self) -> Link | None:
        """For whoever may make one."""
        if not self.may("user.write"):
            return None
        return self.link(say("New"), f"{self.root}/{SECTION}/new", say("user"))


def user_badge(state: UserState, page: ConsolePage) -> Badge:
    """How a person's account stands."""
    return Badge(page.words.t(_STATES[state]), "success" if state is UserState.ACTIVE else "")


class OfUser(ConsolePage):
    """A page about one person."""

    section = SECTION

    @property
    def user(self) -> HumanUser:
        """Which one."""
        user: HumanUser = self.context.value
        return user

    @property
    def person(self) -> Subject:
        """The same, with the organization."""
        if self.organization is None:
            raise ValueError("a user belongs to an organization")
        return Subject(self.user, self.organization)

    @property
    def href(self) -> str:
        """The address of the person's page."""
        return f"{CONSOLE}/{SECTION}/{self.user.id}"

    def trail(self) -> Sequence[tuple[str, str]]:
        """List and, below it, the person."""
        return [(say("Users"), f"{self.root}/{SECTION}"), (self.user.display_name, self.href)]


@dataclass(frozen=True)
class SessionRow:
    """A session as lists show it."""

    device: Markup
    place: str
    started_at: datetime
    last_seen_at: datetime
    href: str


def session_rows(page: ConsolePage, sessions: Iterable[Session]) -> list[SessionRow]:
    """Sessions of one user, in words."""
    return [
        SessionRow(
            device=device(one.user_agent, page.words),
            place=one.client_address,
            started_at=one.started_at,
            last_seen_at=one.last_seen_at,
            href=f"{CONSOLE}/{SECTION}/{one.user_id}/sessions/{one.id}",
        )
        for one in sessions
    ]


class UserPage(OfUser):
    """All about one: facts, sessions, what they may, how they prove who they are."""

    template = "console/user.html"

    def title(self) -> str:
        """The name."""
        return self.user.display_name

    def trail(self) -> Sequence[tuple[str, str]]:
        """Below the list."""
        return super().trail()[:1]

    def show(self) -> Mapping[str, object]:
        """Newest first, a few of each."""
        services, user = self.services, self.user
        sessions = services.users.sessions(user.id) if self.may("session.read") else ()
        failures = services.users.failures(user.id)
        grants: Sequence[Any] = ()
        if self.may("user_grant.read"):
            grants = self.listed(services.storage.user_grants.page_of_user(user.id, PageRequest(limit=FEW))).items
        return {
            "user": user,
            "login_name": self.person.login_name,
            "href": self.href,
            "failures": failures,
            "locked": failures >= MOST_ATTEMPTS,
            "badge": user_badge(services.users.states([user])[user.id], self),
            "sessions": session_rows(self, sessions[:FEW]),
            "more_sessions": len(sessions) > FEW,
            "connections": services.users.connections(user.id) if self.may("session.read") else (),
            "roles": held_roles(self, user.id),
            "grants": held_grants(self, grants),
            "of_plugins": list(self._of_user_plugins()),
        }

    def _of_user_plugins(self) -> Iterator[UserSection]:
        for plugin, hook in self.request.registry.identity.host.implementations("console_user_sections"):
            try:
                yield from hook(principal=self.principal, user=self.user) or ()
            except Exception:
                log.exception("plugin %s failed to add to the page of a user", plugin)


class ChangeUser(OfUser, ConsoleForm):
    """Changes names, and how the person is reached."""

    template = "console/user_form.html"
    fields = (*_NAMES, *_PROFILE)
    missing = MISSING

    def title(self) -> str:
        """The heading."""
        return say("Change {name}", name=self.user.display_name)

    def values(self) -> Mapping[str, str]:
        """What is stored, and in which version."""
        profile = {name: getattr(self.user.profile, name) for name in self.fields if name != "user_name"}
        return {"user_name": self.user.user_name, **profile, VERSION: str(self.user.version)}

    def show(self) -> Mapping[str, object]:
        """What to choose from, and how the address stands."""
        profile = self.user.profile
        return {
            "languages": list(LANGUAGE_NAMES.items()),
            "verified": profile.email if profile.email_verified else "",
            "back": self.href,
        }

    def submit(self, form: Form) -> Response:
        """Save it."""
        command = self.decoded(ChangeHumanUser, form.texts(*self.fields))
        version = version_of(form.one(VERSION))
        self.services.users.change(self.user.id, command, by=self.principal, expected_version=version)
        return self.redirect(self.done(self.href))


class _Confirm(OfUser, ConfirmPage):
    def back(self) -> str:
        return self.href

    def falls(self) -> Effects:
        """What hangs on the account."""
        effects: Effects = self.services.effects.of_user(self.user.id)
        return effects


class Deactivate(DeactivatePage, _Confirm):
    """Asks before nobody can sign in to the account."""

    def question(self) -> str:
        """With the name."""
        return say("Deactivate the user “{name}”?", name=self.user.display_name)

    def effects(self) -> Sequence[str]:
        """What ends."""
        tn, falls = self.words.tn, self.falls()
        ended = [
            tn("{n} session ends at once.", "{n} sessions end at once.", falls.sessions) if falls.sessions else "",
            tn("{n} live token stops working.", "{n} live tokens stop working.", falls.live_tokens)
            if falls.live_tokens
            else "",
        ]
        signs_in = say("{name} cannot sign in any more.", name=self.person.login_name)
        return [signs_in, *(one for one in ended if one), say("You can reactivate it later.")]

    def label(self) -> str:
        """The button."""
        return say("Deactivate user")

    def act(self) -> str:
        """Do it."""
        self.services.users.deactivate(self.user.id, by=self.principal)
        return self.href


class Reactivate(ReactivatePage, _Confirm):
    """Asks before the person can sign in again."""

    def question(self) -> str:
        """With the name."""
        return say("Reactivate the user “{name}”?", name=self.user.display_name)

    def effects(self) -> Sequence[str]:
        """What works again."""
        return [say("{name} can sign in again, with the password from before.", name=self.person.login_name)]

    def label(self) -> str:
        """The button."""
        return say("Reactivate user")

    def act(self) -> str:
        """Do it."""
        self.services.users.reactivate(self.user.id, by=self.principal)
        return self.href


class Unlock(_Confirm):
    """Asks before the password can be tried everywhere again."""

    danger = False

    def question(self) -> str:
        """With the name."""
        return say("Unlock the user “{name}”?", name=self.user.display_name)

    def effects(self) -> Sequence[str]:
        """What works again, and what stays."""
        return [
            say("The wrong passwords that were tried are forgotten: the password counts in every browser again."),
            say("Password, sessions and tokens stay as they are."),
        ]

    def label(self) -> str:
        """The button."""
        return say("Unlock user")

    def keep(self) -> str:
        """The way back."""
        return say("Keep it locked")

    def act(self) -> str:
        """Do it."""
        self.services.users.unlock(self.user.id, by=self.principal)
        return self.href


class Delete(_Confirm):
    """Asks for the name before the account is gone for ever."""

    def question(self) -> str:
        """With the name."""
        return say("Delete the user “{name}”?", name=self.user.display_name)

    def effects(self) -> Sequence[str]:
        """In numbers."""
        undone = say("This cannot be undone. Applications will not know {name} any more.", name=self.user.display_name)
        return [undone, *effect_words(self.falls(), self)]

    def label(self) -> str:
        """The button."""
        return say("Delete user")

    def name_to_type(self) -> str:
        """The user name."""
        return self.user.user_name

    def act(self) -> str:
        """Do it."""
        self.services.users.remove(self.user.id, by=self.principal)
        return f"{self.root}/{SECTION}"


LIST = f"/organizations/{{organization}}/{SECTION}"
ONE = f"/{SECTION}/{{user}}"

PLACES = (
    Place(LIST, UserList, "user.read", targets.organization),
    Place(ONE, UserPage, "user.read", targets.user),
    Place(f"{ONE}/edit", ChangeUser, "user.write", targets.user),
    Place(f"{ONE}/deactivate", Deactivate, "user.write", targets.user),
    Place(f"{ONE}/reactivate", Reactivate, "user.write", targets.user),
    Place(f"{ONE}/unlock", Unlock, "user.write", targets.user),
    Place(f"{ONE}/delete", Delete, "user.delete", targets.user),
)
