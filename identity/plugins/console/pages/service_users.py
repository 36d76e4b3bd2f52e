"""Service users: list, make, look at, change, deactivate and delete."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from pyramid.response import Response

from identity.domain.effects import Effects
from identity.domain.service_user_keys import ServiceUserKey
from identity.domain.users import ServiceUser, TokenFormat
from identity.domain.words import say
from identity.http import targets
from identity.pages.forms import VERSION, Form
from identity.pages.signed_in_page import version_of
from identity.plugins.console.badges import Badge, expiry_badge, keys_badge, state_badge
from identity.plugins.console.confirm_page import ConfirmPage, DeactivatePage, ReactivatePage
from identity.plugins.console.console_page import CONSOLE, ConsoleForm, ConsolePage, Link
from identity.plugins.console.effect_words import effect_words
from identity.plugins.console.holdings import FEW, held_grants, held_roles
from identity.plugins.console.list_page import ListPage
from identity.plugins.console.own_project import own_audience_scope
from identity.plugins.console.places import Place
from identity.services.commands.service_users import ChangeServiceUser, CreateServiceUser
from identity.storage.paging import Page, PageRequest
from identity.storage.stores.users import UserKind

SECTION = "service-users"

_FIELDS = ("user_name", "display_name", "description", "access_token_type")

#: What is said of an empty field tells which one it is.
_MISSING = {
    "user_name": say("Enter a user name."),
    "display_name": say("Enter a display name."),
}


@dataclass(frozen=True)
class Row:
    """A service user as the list shows it."""

    user: ServiceUser
    href: str
    state: Badge
    keys: Badge | None
    last_token_at: datetime | None


class ServiceUserList(ListPage):
    """One row a service user, by name."""

    template = "console/service_users.html"
    section = SECTION
    heading = say("Service users")
    lead = say("Programs that sign in without a person, with a key or a secret.")
    columns = (say("Name"), say("User name"), say("State"), say("Keys"), say("Last token"), say("Created"))
    orders = (("user_name", say("User name")), ("display_name", say("Name")), ("created_at", say("Created")))
    empty_title = say("No service users yet")
    empty_text = say(
        "A service user lets a program use your APIs. Create one, give it a key, and download the key file."
    )

    def fetch(self, asked: PageRequest) -> Page[Any]:
        """Service users of the organization."""
        found: Page[Any] = self.services.storage.users.page(self.context.value.id, UserKind.SERVICE, asked)
        return found

    def rows(self, found: Sequence[ServiceUser]) -> Sequence[Row]:
        """With all their keys in one badge."""
        now = self.services.now
        summaries = self.services.storage.service_user_keys.summaries([one.id for one in found], now)
        return [
            Row(
                user=one,
                href=f"{CONSOLE}/service-users/{one.id}",
                state=state_badge(one.active, self.words),
                keys=keys_badge(summaries.get(one.id), now, self.words),
                last_token_at=summaries[one.id].last_used_at if one.id in summaries else None,
            )
            for one in found
        ]

    def new(self) -> Link | None:
        """For whoever may make one."""
        if not self.may("service_user.write"):
            return None
        return self.link(say("New"), f"{self.root}/{SECTION}/new", say("service user"))


class ServiceUserForm(ConsoleForm):
    """The fields of a service user."""

    template = "console/service_user_form.html"
    section = SECTION
    fields = _FIELDS
    missing = _MISSING

    def show(self) -> Mapping[str, object]:
        """What to choose from."""
        return {
            "types": [
                (TokenFormat.OPAQUE.value, self.words.t("Opaque")),
                (TokenFormat.JWT.value, self.words.t("JWT")),
            ],
            "label": self.words.t(self.label()),
            "back": self.trail()[-1][1],
        }

    def label(self) -> str:
        """The button."""
        raise NotImplementedError

    def typed(self, form: Form) -> dict[str, object]:
        """The fields as commands take them; absent ones are empty."""
        values: dict[str, object] = dict(form.texts(*_FIELDS))
        values["access_token_type"] = values["access_token_type"] or TokenFormat.OPAQUE.value
        return values


class NewServiceUser(ServiceUserForm):
    """Makes one, and leads to its page."""

    creates = True

    def title(self) -> str:
        """The heading."""
        return say("New service user")

    def label(self) -> str:
        """The button."""
        return say("Create")

    def trail(self) -> Sequence[tuple[str, str]]:
        """Below the list."""
        return [(say("Service users"), f"{self.root}/{SECTION}")]

    def values(self) -> Mapping[str, str]:
        """Tokens are opaque unless somebody wants them otherwise."""
        return {"access_token_type": TokenFormat.OPAQUE.value}

    def submit(self, form: Form) -> Response:
        """Make it."""
        command = self.decoded(CreateServiceUser, self.typed(form))
        self.use_once(form)
        user = self.services.service_users.create(self.context.value.id, command)
        return self.redirect(self.done(f"{CONSOLE}/service-users/{user.id}"))


class OfServiceUser(ConsolePage):
    """A page about one service user."""

    section = SECTION

    @property
    def user(self) -> ServiceUser:
        """Which one."""
        user: ServiceUser = self.context.value
        return user

    @property
    def href(self) -> str:
        """The address of its page."""
        return f"{CONSOLE}/service-users/{self.user.id}"

    def trail(self) -> Sequence[tuple[str, str]]:
        """List and, below it, the service user."""
        return [(say("Service users"), f"{self.root}/{SECTION}"), (self.user.display_name, self.href)]


@dataclass(frozen=True)
class KeyRow:
    """A key as lists show it."""

    key: ServiceUserKey
    badge: Badge
    href: str


class ServiceUserPage(OfServiceUser):
    """All about one: facts, keys, secrets, personal access tokens, what it may."""

    template = "console/service_user.html"

    def title(self) -> str:
        """Its name."""
        return self.user.display_name

    def trail(self) -> Sequence[tuple[str, str]]:
        """Below the list."""
        return super().trail()[:1]

    def show(self) -> Mapping[str, object]:
        """Newest first, a few of each."""
        services, user, few = self.services, self.user, PageRequest(limit=FEW)
        keys = services.service_users.keys(user.id, few)
        tokens = services.service_users.tokens(user.id, few)
        return {
            "user": user,
            "href": self.href,
            "badge": state_badge(user.active, self.words),
            "keys": key_rows(self, keys, self.href),
            "more_keys": keys.next is not None,
            "secrets": services.service_users.secrets(user.id),
            "tokens": [(one, expiry_badge(one.expires_at, services.now, self.words)) for one in tokens],
            "more_tokens": tokens.next is not None,
            "roles": held_roles(self, user.id),
            "grants": held_grants(self, self.listed(services.storage.user_grants.page_of_user(user.id, few))),
            "audience_scope": own_audience_scope(self),
        }


def key_rows(page: ConsolePage, keys: Page[ServiceUserKey], href: str) -> list[KeyRow]:
    """The keys of a service user whose page lies at ``href``."""
    now = page.services.now
    return [
        KeyRow(
            key=one,
            badge=expiry_badge(one.expires_at, now, page.words),
            href=f"{href}/keys/{one.id}",
        )
        for one in keys
    ]


class ChangeServiceUserPage(OfServiceUser, ServiceUserForm):
    """Changes the fields."""

    def title(self) -> str:
        """The heading."""
        return say("Change {name}", name=self.user.display_name)

    def label(self) -> str:
        """The button."""
        return say("Save")

    def values(self) -> Mapping[str, str]:
        """What is stored, and in which version."""
        return {**{name: str(getattr(self.user, name)) for name in _FIELDS}, VERSION: str(self.user.version)}

    def submit(self, form: Form) -> Response:
        """Save it."""
        command = self.decoded(ChangeServiceUser, self.typed(form))
        version = version_of(form.one(VERSION))
        self.services.service_users.change(self.user.id, command, by=self.principal, expected_version=version)
        return self.redirect(self.done(self.href))


class _Confirm(OfServiceUser, ConfirmPage):
    def back(self) -> str:
        return self.href

    def falls(self) -> Effects:
        """What hangs on it."""
        effects: Effects = self.services.effects.of_user(self.user.id)
        return effects


class Deactivate(DeactivatePage, _Confirm):
    """Asks before its tokens stop working."""

    def question(self) -> str:
        """With its name."""
        return say("Deactivate the service user “{name}”?", name=self.user.display_name)

    def effects(self) -> Sequence[str]:
        """What stops."""
        stops = say("Its keys, secrets and tokens stop working at once.")
        return [stops, say("You can reactivate it later.")]

    def label(self) -> str:
        """The button."""
        return say("Deactivate service user")

    def act(self) -> str:
        """Do it."""
        self.services.service_users.deactivate(self.user.id, by=self.principal)
        return self.href


class Reactivate(ReactivatePage, _Confirm):
    """Asks before it works again."""

    def question(self) -> str:
        """With its name."""
        return say("Reactivate the service user “{name}”?", name=self.user.display_name)

    def effects(self) -> Sequence[str]:
        """What works again."""
        return [say("Its keys, secrets and tokens that have not expired work again.")]

    def label(self) -> str:
        """The button."""
        return say("Reactivate service user")

    def act(self) -> str:
        """Do it."""
        self.services.service_users.reactivate(self.user.id, by=self.principal)
        return self.href


class Delete(_Confirm):
    """Asks for the name before it is gone for ever."""

    def question(self) -> str:
        """With its name."""
        return say("Delete the service user “{name}”?", name=self.user.display_name)

    def effects(self) -> Sequence[str]:
        """In numbers."""
        return [
            say("This cannot be undone. Programs that use it lose access at once."),
            *effect_words(self.falls(), self),
        ]

    def label(self) -> str:
        """The button."""
        return say("Delete service user")

    def name_to_type(self) -> str:
        """Its user name."""
        return self.user.user_name

    def act(self) -> str:
        """Do it."""
        self.services.service_users.remove(self.user.id, by=self.principal)
        return f"{self.root}/{SECTION}"


_LIST = f"/organizations/{{organization}}/{SECTION}"
_ONE = "/service-users/{service_user}"

PLACES = (
    Place(_LIST, ServiceUserList, "service_user.read", targets.organization),
    Place(f"{_LIST}/new", NewServiceUser, "service_user.write", targets.organization),
    Place(_ONE, ServiceUserPage, "service_user.read", targets.service_user),
    Place(f"{_ONE}/edit", ChangeServiceUserPage, "service_user.write", targets.service_user),
    Place(f"{_ONE}/deactivate", Deactivate, "service_user.write", targets.service_user),
    Place(f"{_ONE}/reactivate", Reactivate, "service_user.write", targets.service_user),
    Place(f"{_ONE}/delete", Delete, "service_user.delete", targets.service_user),
)
