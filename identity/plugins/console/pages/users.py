"""Users: people's accounts: list, make, look at, change, deactivate and delete."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

from markupsafe import Markup

from identity.domain.effects import Removed
from identity.domain.entity import Member
from identity.domain.users import HumanUser, Profile, Subject
from identity.domain.words import say, say_many
from identity.http import targets
from identity.pages.forms import VERSION
from identity.pages.wrapping import breakable
from identity.plugins.console.badges import Badge
from identity.plugins.console.confirm_page import LATER, ConfirmThing, DeactivatePage, DeletePage, ReactivatePage
from identity.plugins.console.console_form import ChangePage
from identity.plugins.console.console_page import CONSOLE, ConsolePage
from identity.plugins.console.fields import Field, fields_of
from identity.plugins.console.holdings import held_roles_section
from identity.plugins.console.list_page import Cells, ListPage
from identity.plugins.console.pages.audit_events import events_panel
from identity.plugins.console.pages.connections import connections_section
from identity.plugins.console.pages.held_grants import HELD_GRANTS
from identity.plugins.console.pages.legal_holds import hold_badge, hold_panel
from identity.plugins.console.pages.sessions import SessionList
from identity.plugins.console.pages.user_access import HandOverLink, NewPasswordLink, OneTimePassword
from identity.plugins.console.pages.user_factors import factors_section
from identity.plugins.console.places import Place, of_things
from identity.plugins.console.sections import Facts, Note, Panel, Section
from identity.plugins.console.show_page import ShowPage
from identity.plugins.console.things import OfUser
from identity.services.commands.users import ChangeHumanUser
from identity.services.users import UserState
from identity.storage.paging import Page, PageRequest
from identity.storage.stores.users import UserKind

_STATES = {
    UserState.ACTIVE: say("Active"),
    UserState.MUST_CHANGE_PASSWORD: say("Must change password"),
    UserState.INVITED: say("Invited"),
    UserState.DEACTIVATED: say("Deactivated"),
    UserState.LEAVING: say("Is being deleted"),
}


class UserList(ListPage):
    """One row a person, by user name."""

    section = "users"
    title = say("Users")
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
    writing, what = "user.write", say("user")

    def fetch(self, asked: PageRequest) -> Page[Any]:
        return self.services.storage.users.page(self.context.value.id, UserKind.HUMAN, asked)

    def rows(self, found: Sequence[HumanUser]) -> Sequence[Cells]:
        states, locked = self.services.users.states(found), self.services.users.locked(found, self.context.value)
        return [
            (
                self.ui.named(one.display_name, f"{CONSOLE}/users/{one.id}"),
                breakable(Subject(one, self.context.value).login_name),
                breakable(one.profile.email) if one.profile.email else self.faint(say("None")),
                Markup(" ").join(map(self.badge, _badges(states[one.id], one.id in locked, self))),
                self.ago(one.last_sign_in_at),
                self.ui.when(one.created_at),
            )
            for one in found
        ]


def _badges(state: UserState, locked: bool, page: ConsolePage) -> Sequence[Badge]:
    """How a person's account stands."""
    badge = Badge(page.words.t(_STATES[state]), "success" if state is UserState.ACTIVE else "")
    return [badge, Badge(page.words.t("Locked"), "danger")] if locked else [badge]


#: These come first in the form and on the page, the others as the profile has them.
_FIRST = ("given_name", "family_name", "display_name", "nickname", "email", "phone", "locale")


class ChangeUser(OfUser, ChangePage):
    """Changes names, and how the person is reached. The rest is said on the person's own pages."""

    command = ChangeHumanUser
    inputs = (*fields_of(HumanUser), *fields_of(Profile, *_FIRST))

    def drawn(self) -> Sequence[Field]:
        profile = self.thing.profile
        if not profile.email_verified:
            return self.inputs
        verified = self.words.t("{email} is confirmed.", email=profile.email) + " "
        return [
            replace(one, hint=verified + self.said(one.hint)) if one.name == "email" else one for one in self.inputs
        ]

    def stored(self, thing: HumanUser) -> dict[str, Any]:
        user_name, *others = self.inputs
        profile = {one.name: one.shown(getattr(thing.profile, one.member)) for one in others}
        return {user_name.name: thing.user_name, **profile, VERSION: str(thing.version)}


def _what_ends(page: Any) -> Sequence[str]:
    falls = page.services.effects(Removed.USER, page.thing.id)
    ended = (
        say_many("{n} session ends at once.", "{n} sessions end at once.", falls.sessions),
        say_many("{n} live token stops working.", "{n} live tokens stop working.", falls.live_tokens),
    )
    signs_in = say("{name} cannot sign in any more.", name=page.person.login_name)
    return [signs_in, *(one for one in ended if one.values["n"]), LATER]


def _what_begins(page: Any) -> Sequence[str]:
    return [say("{name} can sign in again, with the password from before.", name=page.person.login_name)]


def _what_refuses(page: Any) -> str:
    held = page.services.legal_holds.over(page.thing)
    return say("This account is under a legal hold and cannot be deleted.") if held else ""


_DEEDS = (
    DeactivatePage.of(
        OfUser,
        title=say("Deactivate the user “{name}”?"),
        offer=say("The person is signed out and cannot sign in. You can reactivate it later."),
        effects=_what_ends,
        label=say("Deactivate user"),
    ),
    ReactivatePage.of(
        OfUser,
        title=say("Reactivate the user “{name}”?"),
        offer=say("The person can sign in again."),
        effects=_what_begins,
        label=say("Reactivate user"),
    ),
    DeletePage.of(
        OfUser,
        title=say("Delete the user “{name}”?"),
        offer=say("Removes the account with its roles and sessions for ever."),
        undone=say("This cannot be undone. Applications will not know {name} any more."),
        also=_what_refuses,
        label=say("Delete user"),
    ),
)


class Unlock(OfUser, ConfirmThing):
    """Asks before the password can be tried everywhere again."""

    at, action = "/unlock", "write"
    danger = False
    way = (say("Unlock"), say("Unlock …"))
    offer = say(
        "Forgets the wrong passwords that were tried. After a hundred in a row the password counts only in browsers"
        " that signed in before."
    )
    title = say("Unlock the user “{name}”?")
    effects = (
        say("The wrong passwords that were tried are forgotten: the password counts in every browser again."),
        say("Password, sessions and tokens stay as they are."),
    )
    label = say("Unlock user")
    keep = say("Keep it locked")

    @property
    def offered(self) -> bool:
        return bool(self.services.users.failures(self.thing.id))

    def act(self) -> None:
        self.services.users.unlock(self.thing.id, by=self.principal)


class KeepUser(OfUser, ConfirmThing):
    """Asks before an account stays whose person wanted it deleted."""

    at, action = "/keep", "write"
    danger = False
    way = (say("Keep"), say("Keep …"))
    offer = say("The person has asked for the account to be deleted. Signing in, they can keep it themselves.")
    title = say("Keep the user “{name}”?")
    effects = (
        say("The account is not deleted, although its person asked for it."),
        say("The person can sign in again as before."),
    )
    label = say("Keep user")
    keep = say("Let it be deleted")

    @property
    def offered(self) -> bool:
        return self.thing.deletion_at is not None

    def act(self) -> None:
        self.services.deletions.withdraw_for(self.thing.id, by=self.principal)


class UserPage(OfUser, ShowPage):
    """All about one: facts, sessions, what they may, how they prove who they are."""

    deeds = _DEEDS

    @property
    def lead(self) -> Sequence[str]:
        return [say("User"), self.person.login_name]

    @property
    def badges(self) -> Sequence[Badge]:
        user = self.thing
        locked = user.id in self.services.users.locked([user], self.person.organization)
        state = _badges(self.services.users.states([user])[user.id], locked, self)
        return [*state, *hold_badge(self, user.organization_id)]

    @property
    def facts(self) -> Facts:
        ui, user = self.ui, self.thing
        last = user.last_sign_in_at
        return [
            (say("User id"), ui.identifier(user.id)),
            (say("Login name"), breakable(self.person.login_name)),
            *self.settings(user.profile, *_FIRST),
            (say("Last sign-in"), self.ago(None) if last is None else ui.when(last, relative=True, clock=True)),
            (say("Created"), ui.when(user.created_at, relative=True)),
            (say("Will be deleted"), ui.when(user.deletion_at, relative=True) if user.deletion_at else ""),
            (say("Wrong passwords or codes in a row"), str(self.services.users.failures(user.id) or "")),
        ]

    def shown(self, setting: Member, value: Any) -> object:
        return self._email() if setting.name == "email" else super().shown(setting, value)

    def _email(self) -> Markup:
        profile, t = self.thing.profile, self.words.t
        if not profile.email:
            return self.faint(say("None"))
        badge = Badge(t("Confirmed"), "success") if profile.email_verified else Badge(t("Not confirmed"))
        return Markup("{} {}").format(breakable(profile.email), self.badge(badge))

    @property
    def sections(self) -> Sequence[Section | Note | None]:
        user, ways = self.thing, list(self.to_do(NewPasswordLink, HandOverLink, OneTimePassword, Unlock))
        leaving = list(self.to_do(KeepUser))
        return [
            Panel("deletion", say("Deletion"), rows=leaving) if leaving else None,
            Panel("password", say("Password"), rows=ways) if ways and user.active else None,
            factors_section(self),
            *self._of_plugins_here(),
            SessionList.on(self).as_section(),
            connections_section(self),
            held_roles_section(self, user.id),
            HELD_GRANTS[OfUser].on(self).as_section(),
            events_panel(self, user.id),
            hold_panel(self, user.organization_id),
        ]

    def _of_plugins_here(self) -> Iterator[Panel]:
        given = {"principal": self.principal, "user": self.thing}
        return self.from_plugins("console_user_sections", lambda one: one.panel(self), **given)


_LIST = "/organizations/{organization}/users"

PLACES = (
    Place(_LIST, UserList, "user.read", targets.organization),
    *of_things(UserPage, ChangeUser, Unlock, KeepUser, *_DEEDS),
)
