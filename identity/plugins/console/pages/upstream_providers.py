"""Identity providers at which people of an organization can sign in: list, add, look at, change, deactivate, delete."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from markupsafe import Markup
from pyramid.response import Response

from identity.crypto.secrets import derived_id, new_id
from identity.domain.entity import members
from identity.domain.errors import Invalid
from identity.domain.permissions import INSTANCE
from identity.domain.upstream_providers import RETURN_PATH, UpstreamAuthentication, UpstreamKind, UpstreamProvider
from identity.domain.words import say
from identity.http import targets
from identity.lazily import lazily
from identity.pages.forms import ONCE, VERSION, Form, Value
from identity.plugins.console.badges import Badge, state_badge
from identity.plugins.console.confirm_page import LATER, ConfirmThing, DeactivatePage, ReactivatePage
from identity.plugins.console.console_form import ChangePage, ConsoleForm, NewPage
from identity.plugins.console.console_page import CONSOLE
from identity.plugins.console.fields import Field, Text, fields_of
from identity.plugins.console.list_page import Cells, ListPage
from identity.plugins.console.places import Place, of_things
from identity.plugins.console.sections import Facts
from identity.plugins.console.show_page import ShowPage
from identity.plugins.console.things import OfUpstreamProvider
from identity.services.commands.upstream_providers import ChangeUpstreamProvider, CreateUpstreamProvider
from identity.services.upstream_providers import OF_INSTANCE
from identity.storage.paging import Page, PageRequest

_DECLARED = members(UpstreamProvider)
_KINDS = _DECLARED["kind"].declared.words


def _kind(one: UpstreamProvider) -> str:
    return str(_KINDS[one.kind])


class UpstreamProviderList(ListPage):
    """One row a provider, newest first."""

    section = "upstream-providers"
    title = say("Identity providers")
    lead = say("Where people can sign in instead of here: at an OpenID provider, or at GitHub.")
    columns = (say("Name"), say("Kind"), say("State"), say("Since"))
    empty_title = say("No identity providers yet")
    empty_text = say(
        "Let people sign in with an account that they have already, such as that of your company or of Google."
    )
    writing, what = "upstream_provider.write", say("identity provider")

    def fetch(self, asked: PageRequest) -> Page[Any]:
        return self.services.storage.upstream_providers.page(self.context.value.id, asked)

    def cells(self, one: UpstreamProvider) -> Cells:
        return (
            self.ui.named(one.name, f"{CONSOLE}/upstream-providers/{one.id}"),
            self.said(_kind(one)),
            self.badge(state_badge(one.active, self.words)),
            self.ui.when(one.created_at),
        )


#: A client secret, or the text of a private key: it is never sent back.
_SECRET = Text(
    "client_secret",
    say("Client secret"),
    say("As the provider gave it; of Apple the private key."),
    required=False,
    attributes={"rows": 2, "autocomplete": "off", "autocapitalize": "none", "spellcheck": "false"},
)
_KEPT = say("As the provider gave it; of Apple the private key. Empty leaves it as it is.")
#: These have no other way than a secret.
_BY_SECRET = (UpstreamKind.APPLE, UpstreamKind.GITHUB)


def _fields(*without: str) -> tuple[Field, ...]:
    made = [one for one in fields_of(UpstreamProvider) if one.name not in without]
    at = next(number for number, one in enumerate(made) if one.name == "issuer")
    return (*made[:at], _SECRET, *made[at:])


class ProviderForm(ConsoleForm):
    """What is alike where one is added and changed."""

    secret_fields = frozenset({_SECRET.name})

    def drawn(self) -> Sequence[Field]:
        decides = self.services.access.may(self.principal, OF_INSTANCE, INSTANCE)
        return [one for one in self.inputs if decides or one.name == _SECRET.name or not _needs_instance(one)]

    def typed(self, form: Form) -> dict[str, object]:
        told = super().typed(form)
        return told if told.get(_SECRET.name) else {name: one for name, one in told.items() if name != _SECRET.name}


def _needs_instance(one: Field) -> bool:
    declared = _DECLARED.get(one.member)
    return declared is not None and bool(declared.declared.permission)


class NewUpstreamProvider(ProviderForm, NewPage):
    """Adds one, and leads to its page. Its redirect URI is there from the start: the provider wants to know it before
    it gives a client id and a secret."""

    section, under = "upstream-providers", say("Identity providers")
    title = say("New identity provider")
    inputs = _fields()
    command = CreateUpstreamProvider
    pages_at = "upstream-providers"
    label = say("Add")

    def values(self) -> Mapping[str, Value]:
        return {**super().values(), ONCE: self._once}

    def show(self) -> Mapping[str, object]:
        redirect = f"{self.request.registry.identity.settings.login_url}{RETURN_PATH}/{self._id}"
        about = Markup("{} {}").format(
            self.words.t(
                "First register this service at the provider, with this redirect URI. It stays the same after saving."
            ),
            self.ui.identifier(redirect),
        )
        return {**super().show(), "about": about}

    def post(self) -> Response:
        self._once = self._read().one(ONCE) or self._once
        return super().post()

    def submit(self, form: Form) -> Response:
        wanted = form.one("authentication") != UpstreamAuthentication.PRIVATE_KEY_JWT or form.one("kind") in _BY_SECRET
        if wanted and not form.one(_SECRET.name):
            # It is not sent back where something else is wrong, and would be missed later.
            self.command_from(self.command, form)
            raise Invalid({_SECRET.name: say("Enter the client secret.")})
        return super().submit(form)

    def make(self, command: CreateUpstreamProvider) -> Any:
        return self.services.upstream_providers.create(self.context.value.id, command, by=self.principal, id=self._id)

    @lazily
    def _once(self) -> str:
        return new_id()

    @property
    def _id(self) -> str:
        """Of the provider that this form makes, however often it is drawn; nobody else's, and of nobody's choice."""
        return derived_id("upstream_provider", self.principal.id or "", self.context.value.id, self._once)


class ChangeUpstreamProviderPage(OfUpstreamProvider, ProviderForm, ChangePage):
    """Changes one; the kind stays."""

    inputs = _fields("kind")
    command = ChangeUpstreamProvider

    def drawn(self) -> Sequence[Field]:
        if not self.thing.secret_changed_at:
            return super().drawn()
        return [replace(one, hint=_KEPT) if one.name == _SECRET.name else one for one in super().drawn()]

    def values(self) -> Mapping[str, Value]:
        held = {
            one.name: one.shown(getattr(self.thing, one.member)) for one in self.drawn() if one.name != _SECRET.name
        }
        return {**held, VERSION: str(self.thing.version)}


class Delete(OfUpstreamProvider, ConfirmThing):
    """Asks before it is gone."""

    at, action = "/delete", "delete"
    way = (say("Delete"), say("Delete …"))
    title = say("Delete the identity provider “{name}”?")
    offer = say("Removes it and its links to accounts for ever. The accounts stay.")
    effects = (
        say("Nobody signs in there any more. People who have no password here ask for one by mail."),
        say("The accounts of people stay. Their links to it are gone for ever."),
    )
    label = say("Delete identity provider")

    def act(self) -> str:
        """Do it; then to the others."""
        back = self.above[-1][1]
        self.services.upstream_providers.remove(self.thing.id, by=self.principal)
        return back


_DEEDS = (
    DeactivatePage.of(
        OfUpstreamProvider,
        title=say("Deactivate the identity provider “{name}”?"),
        offer=say("Nobody signs in there any more. You can reactivate it later."),
        effects=(say("Nobody signs in there any more. Sessions that were begun there go on."), LATER),
        label=say("Deactivate identity provider"),
    ),
    ReactivatePage.of(
        OfUpstreamProvider,
        title=say("Reactivate the identity provider “{name}”?"),
        offer=say("People can sign in there again."),
        effects=(say("People can sign in there again."),),
        label=say("Reactivate identity provider"),
    ),
    Delete,
)


class UpstreamProviderPage(OfUpstreamProvider, ShowPage):
    """All about one: how it is reached, and what becomes of people who come from it."""

    deeds = _DEEDS
    told_elsewhere = ("name", "kind", "claims")

    @property
    def lead(self) -> Sequence[str]:
        return [say("Identity provider"), _kind(self.thing)]

    @property
    def badges(self) -> Sequence[Badge]:
        waits = [] if self.thing.usable or not self.thing.active else [say("Client secret is missing")]
        return [*super().badges, *(Badge(self.words.t(words), "warning") for words in waits)]

    @property
    def facts(self) -> Facts:
        one = self.thing
        settings = self.settings(one if one.issuer else replace(one, issuer=one.known_as))
        redirect = f"{self.request.registry.identity.settings.login_url}{one.return_path}"
        return [
            (say("Id"), self.ui.identifier(one.id)),
            (say("Redirect URI"), self.ui.identifier(redirect)),
            *settings,
            (say("Claims"), ", ".join(one.claims)),
            (say("Client secret"), self.ui.when(one.secret_changed_at) if one.secret_changed_at else say("None")),
            (say("Since"), self.ui.when(one.created_at, relative=True)),
        ]


_LIST = "/organizations/{organization}/upstream-providers"

PLACES = (
    Place(_LIST, UpstreamProviderList, "upstream_provider.read", targets.organization),
    Place(f"{_LIST}/new", NewUpstreamProvider, "upstream_provider.write", targets.organization),
    *of_things(UpstreamProviderPage, ChangeUpstreamProviderPage, *_DEEDS),
)
