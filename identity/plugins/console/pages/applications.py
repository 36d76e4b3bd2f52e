"""Applications of a project: look at, deactivate and delete."""

from collections.abc import Sequence
from datetime import timedelta
from typing import Any

from markupsafe import Markup

from identity.domain.applications import Application, ApplicationType
from identity.domain.entity import Member
from identity.domain.words import say
from identity.http import targets
from identity.plugins.console.application_words import FIRST, TYPES
from identity.plugins.console.badges import Badge, secrets_badge, state_badge
from identity.plugins.console.client_secrets import secret_places, secrets_table
from identity.plugins.console.confirm_page import LATER, DeactivatePage, DeletePage, ReactivatePage
from identity.plugins.console.console_page import CONSOLE
from identity.plugins.console.list_page import Cells, ListPage
from identity.plugins.console.pages.branding import looks_section
from identity.plugins.console.places import Place, of_things
from identity.plugins.console.sections import FactList, Facts, Note, Section, Table
from identity.plugins.console.show_page import ShowPage
from identity.plugins.console.things import OfApplication, OfProject
from identity.provider.endpoints import metadata
from identity.storage.paging import Page, PageRequest

#: The addresses of the service that applications are set up with, by their names in the discovery document.
_ENDPOINTS = {
    "authorization_endpoint": say("Authorization endpoint"),
    "token_endpoint": say("Token endpoint"),
    "userinfo_endpoint": say("User info endpoint"),
    "introspection_endpoint": say("Introspection endpoint"),
    "revocation_endpoint": say("Revocation endpoint"),
    "end_session_endpoint": say("End of session endpoint"),
    "jwks_uri": say("Signing keys"),
}


class ApplicationList(OfProject, ListPage):
    """One row an application, by name."""

    below = "/applications"

    title = say("Applications")
    lead = say("Programs that people sign in to, and APIs that check tokens.")
    columns = (say("Name"), say("Type"), say("Client id"), say("Secret"), say("State"))
    orders = (("name", say("Name")),)
    empty_title = say("No applications yet")
    empty_text = say("Register the first application. It gets a client id and, where it can keep one, a secret.")
    reading, writing, what = "application.read", "application.write", say("application")
    id, all_of_them, comes_first = "applications", say("All applications …"), True

    def fetch(self, asked: PageRequest) -> Page[Any]:
        return self.services.storage.applications.page(self.thing.id, asked)

    def rows(self, found: Sequence[Application]) -> Sequence[Cells]:
        """With their secrets in one badge; public ones have none by their nature."""
        counts = self.services.storage.applications.secret_counts([one.id for one in found])
        return [
            (
                self.ui.named(one.name, f"{CONSOLE}/applications/{one.id}"),
                self.said(TYPES[one.type].label),
                self.ui.code(one.id),
                self.faint(say("None")) if one.public else self.badge(secrets_badge(counts.get(one.id, 0), self.words)),
                self.badge(state_badge(one.active, self.words)),
            )
            for one in found
        ]


_DEEDS = (
    DeactivatePage.of(
        OfApplication,
        title=say("Deactivate the application “{name}”?"),
        offer=say("Nobody signs in to it any more. You can reactivate it later."),
        effects=(say("Nobody signs in to it, and it gets and checks no tokens."), LATER),
        label=say("Deactivate application"),
    ),
    ReactivatePage.of(
        OfApplication,
        title=say("Reactivate the application “{name}”?"),
        offer=say("People sign in to it again."),
        effects=(say("People sign in to it again, and its secrets work again."),),
        label=say("Reactivate application"),
    ),
    DeletePage.of(
        OfApplication,
        title=say("Delete the application “{name}”?"),
        offer=say("Removes the application and its secrets for ever."),
        undone=say("This cannot be undone. Its client id never works again."),
        label=say("Delete application"),
    ),
)


class ApplicationPage(OfApplication, ShowPage):
    """All about one: what it is set up with here, and what it has to be set up with there."""

    deeds = _DEEDS
    told_elsewhere = ("name", "redirect_uris", "post_logout_redirect_uris", "development")

    @property
    def people(self) -> bool:
        """True if people sign in to it."""
        return self.thing.type is not ApplicationType.API

    @property
    def lead(self) -> Sequence[str]:
        return [TYPES[self.thing.type].label, self.project.name]

    @property
    def badges(self) -> Sequence[Badge]:
        development = [Badge(self.words.t("Development"), "warning")] if self.thing.development else []
        return [*super().badges, *development]

    @property
    def facts(self) -> Facts:
        one = self.thing
        addresses = [
            (say("Redirect URIs"), self._lines(one.redirect_uris)),
            (say("Post-logout redirect URIs"), self._lines(one.post_logout_redirect_uris)),
        ]
        return [
            (say("Client id"), self.ui.identifier(one.id)),
            *(addresses if self.people else []),
            (say("Created"), self.ui.when(one.created_at, relative=True)),
        ]

    @property
    def sections(self) -> Sequence[Section | Note | None]:
        settings = FactList("settings", say("Settings"), facts=self.settings(self.thing, *FIRST))
        looks = looks_section(self) if self.people else None
        return [self._secrets(), self._endpoints(), settings, looks]

    def _secrets(self) -> Table | None:
        lead = say("Two can be live, so that one is replaced without a gap: make a new one, use it, end the old one.")
        empty = say("No client secret: the application gets no tokens until it has one.")
        if self.thing.public:
            return None
        return secrets_table(self, "secrets", say("Client secrets"), lead, empty=empty, first=True)

    def _endpoints(self) -> FactList:
        identity = self.request.registry.identity
        document, issuer = metadata.members(identity.protocol, identity.settings), identity.settings.issuer_url
        addresses = [(label, document[name]) for name, label in _ENDPOINTS.items() if name in document]
        known = [(say("Issuer"), issuer), (say("Discovery document"), issuer + metadata.ENDPOINT.path), *addresses]
        return FactList(
            "endpoints",
            say("What the application has to know of us"),
            say("Most libraries need the issuer alone, and read the rest from the discovery document."),
            facts=[(label, self.ui.identifier(address)) for label, address in known],
        )

    def shown(self, setting: Member, value: Any) -> object:
        if setting.type is timedelta:
            return self._lifetime(setting.name)
        return self.ui.code(value) if setting.type is str else super().shown(setting, value)

    def _lifetime(self, name: str) -> Markup:
        own: timedelta | None = getattr(self.thing, name)
        span = own or getattr(self.request.registry.identity.settings, name)
        told = self.words.tn("{n} minute", "{n} minutes", span // timedelta(minutes=1))
        return told if own else told + " " + self.faint(say("as everywhere"))

    def _lines(self, addresses: Sequence[str]) -> Markup:
        shown = [Markup("<div>{}</div>").format(self.ui.identifier(one)) for one in addresses]
        return Markup().join(shown) or self.faint(say("None"))


PLACES = (
    Place("/projects/{project}/applications", ApplicationList, "application.read", targets.project),
    *of_things(ApplicationPage, *_DEEDS),
    *secret_places(
        OfApplication,
        loss=say("Where it is still in use, the application gets no tokens any more."),
        last_loss=say("It is the only one: the application gets no tokens until it has a new one."),
        tokens=say("Tokens that the application got for itself by it end at once. Those of people stay."),
    ),
)
