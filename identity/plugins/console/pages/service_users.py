"""Service users: list, make, look at, change, deactivate and delete."""

from collections.abc import Sequence
from typing import Any

from identity.domain.users import ServiceUser
from identity.domain.words import say
from identity.http import targets
from identity.plugins.console.badges import keys_badge, state_badge
from identity.plugins.console.confirm_page import LATER, DeactivatePage, DeletePage, ReactivatePage
from identity.plugins.console.console_form import ChangePage, NewPage
from identity.plugins.console.console_page import CONSOLE
from identity.plugins.console.fields import fields_of
from identity.plugins.console.holdings import held_roles_section
from identity.plugins.console.list_page import Cells, ListPage
from identity.plugins.console.own_project import audience_scope
from identity.plugins.console.pages.audit_events import events_panel
from identity.plugins.console.pages.held_grants import HELD_GRANTS
from identity.plugins.console.pages.service_user_keys import KeyList
from identity.plugins.console.pages.service_user_secrets import TokenList, secret_section
from identity.plugins.console.places import Place, of_things
from identity.plugins.console.sections import Facts, Note, Section
from identity.plugins.console.show_page import ShowPage
from identity.plugins.console.things import OfServiceUser
from identity.services.commands.service_users import ChangeServiceUser, CreateServiceUser
from identity.storage.paging import Page, PageRequest
from identity.storage.stores.users import UserKind


class ServiceUserList(ListPage):
    """One row a service user, by name."""

    section = "service-users"
    title = say("Service users")
    lead = say("Programs that sign in without a person, with a key or a secret.")
    columns = (say("Name"), say("User name"), say("State"), say("Keys"), say("Last token"), say("Created"))
    orders = (("user_name", say("User name")), ("display_name", say("Name")), ("created_at", say("Created")))
    empty_title = say("No service users yet")
    empty_text = say(
        "A service user lets a program use your APIs. Create one, give it a key, and download the key file."
    )
    writing, what = "service_user.write", say("service user")

    def fetch(self, asked: PageRequest) -> Page[Any]:
        return self.services.storage.users.page(self.context.value.id, UserKind.SERVICE, asked)

    def rows(self, found: Sequence[ServiceUser]) -> Sequence[Cells]:
        now = self.services.now
        summaries = self.services.storage.credentials.key_summaries([one.id for one in found], now)
        return [
            (
                self.ui.named(one.display_name, f"{CONSOLE}/service-users/{one.id}"),
                one.user_name,
                self.badge(state_badge(one.active, self.words)),
                self.badge(keys_badge(summaries.get(one.id), now, self.words)) or self.faint(say("None")),
                self.ago(summaries[one.id].last_used_at if one.id in summaries else None),
                self.ui.when(one.created_at),
            )
            for one in found
        ]


_FIELDS = fields_of(ServiceUser)


class NewServiceUser(NewPage):
    """Makes one, and leads to its page."""

    section, under = "service-users", say("Service users")
    title = say("New service user")
    inputs = _FIELDS
    command = CreateServiceUser
    pages_at = "service-users"

    def make(self, command: CreateServiceUser) -> Any:
        return self.services.service_users.create(self.context.value.id, command)


_DEEDS = (
    DeactivatePage.of(
        OfServiceUser,
        title=say("Deactivate the service user “{name}”?"),
        offer=say("Its tokens stop working at once. You can reactivate it later."),
        effects=(say("Its keys, secrets and tokens stop working at once."), LATER),
        label=say("Deactivate service user"),
    ),
    ReactivatePage.of(
        OfServiceUser,
        title=say("Reactivate the service user “{name}”?"),
        offer=say("Its keys, secrets and tokens work again."),
        effects=(say("Its keys, secrets and tokens that have not expired work again."),),
        label=say("Reactivate service user"),
    ),
    DeletePage.of(
        OfServiceUser,
        title=say("Delete the service user “{name}”?"),
        offer=say("Removes the service user, its keys and its roles for ever."),
        undone=say("This cannot be undone. Programs that use it lose access at once."),
        label=say("Delete service user"),
    ),
)


class ServiceUserPage(OfServiceUser, ShowPage):
    """All about one: facts, keys, secrets, personal access tokens, what it may."""

    deeds = _DEEDS

    @property
    def lead(self) -> Sequence[str]:
        return [say("Service user"), self.thing.user_name]

    @property
    def facts(self) -> Facts:
        user = self.thing
        return [
            (say("User id"), self.ui.identifier(user.id)),
            *self.settings(self.thing),
            (say("Created"), self.ui.when(user.created_at, relative=True)),
        ]

    @property
    def sections(self) -> Sequence[Section | Note | None]:
        roles, scope = held_roles_section(self, self.thing.id), audience_scope(self)
        asks = self.words.t(
            "To use the management API, the program requests its token with the scope {scope}",
            scope=self.ui.identifier(f"openid {scope}"),
        )
        return [
            KeyList.on(self).as_section(),
            secret_section(self),
            TokenList.on(self).as_section(),
            roles,
            Note(asks) if roles.rows and scope else None,
            HELD_GRANTS[OfServiceUser].on(self).as_section(),
            events_panel(self, self.thing.id),
        ]


_LIST = "/organizations/{organization}/service-users"

PLACES = (
    Place(_LIST, ServiceUserList, "service_user.read", targets.organization),
    Place(f"{_LIST}/new", NewServiceUser, "service_user.write", targets.organization),
    *of_things(ServiceUserPage, ChangePage.of(OfServiceUser, inputs=_FIELDS, command=ChangeServiceUser), *_DEEDS),
)
