"""Applications of a project: register with client id and secret shown once, look at, change, deactivate and delete."""

from collections.abc import Mapping, Sequence
from datetime import timedelta
from functools import cached_property
from typing import Any

from pyramid.response import Response

from identity.domain.applications import (
    Application,
    ApplicationType,
    ConsentRule,
    redirect_uri_problem,
)
from identity.domain.errors import Invalid
from identity.domain.projects import Project
from identity.domain.rules import LONGEST_TOKEN_LIFETIME
from identity.domain.users import TokenFormat
from identity.domain.words import say
from identity.http import targets
from identity.pages.forms import VERSION, Form, Value
from identity.pages.signed_in_page import version_of
from identity.plugins.console.application_words import (
    AUTHENTICATION_METHODS,
    CONSENT,
    GRANT_TYPES,
    RESPONSE_TYPES,
    TYPES,
    literal_options,
)
from identity.plugins.console.badges import state_badge
from identity.plugins.console.confirm_page import ConfirmPage, DeactivatePage, ReactivatePage
from identity.plugins.console.console_page import CONSOLE, ConsoleForm, ConsolePage, Link
from identity.plugins.console.effect_words import effect_words
from identity.plugins.console.list_page import ListPage
from identity.plugins.console.pages.projects import YES, ApplicationRow, OfProject, application_rows
from identity.plugins.console.pages.service_user_keys import ALREADY
from identity.plugins.console.places import Place
from identity.plugins.console.project_ways import project_trail
from identity.provider.endpoints import metadata
from identity.services.commands import Decoded
from identity.services.commands.applications import ChangeApplication, RegisterApplication
from identity.storage.paging import Page, PageRequest

#: The parameter that names the type in the second step of the registration.
TYPE = "type"

#: Fields with one address a line, with a number of minutes, and with a tick.
_ADDRESSES = ("redirect_uris", "post_logout_redirect_uris")
_LIFETIMES = ("access_token_lifetime", "id_token_lifetime")
_TICKS = ("id_token_userinfo_assertion", "assert_roles_in_access_token", "assert_roles_in_id_token", "development")
#: Forms name one of what commands name all.
_SEVERAL = {"response_types": "response_type", "grant_types": "grant_type"}
#: What an application has no use for that nobody signs in to.
_OF_PEOPLE = frozenset({*_ADDRESSES, *_TICKS, "response_types", "id_token_lifetime", "consent"})
#: What only who manages the instance decides.
_MAY_MANAGE = "may_manage"

_MINUTE = timedelta(minutes=1)
_MOST = LONGEST_TOKEN_LIFETIME // _MINUTE
#: In a list of errors each has to tell which lifetime it is.
_MINUTES = {
    "access_token_lifetime": say("Enter the lifetime of access tokens as minutes from 1 to {most}.", most=_MOST),
    "id_token_lifetime": say("Enter the lifetime of ID tokens as minutes from 1 to {most}.", most=_MOST),
}

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

    template = "console/applications.html"
    heading = say("Applications")
    lead = say("Programs that people sign in to, and APIs that check tokens.")
    columns = (say("Name"), say("Type"), say("Client id"), say("Secret"), say("State"))
    orders = (("name", say("Name")),)
    empty_title = say("No applications yet")
    empty_text = say("Register the first application. It gets a client id and, where it can keep one, a secret.")

    def fetch(self, asked: PageRequest) -> Page[Any]:
        """Applications of the project."""
        found: Page[Any] = self.services.storage.applications.page(self.project.id, asked)
        return found

    def rows(self, found: Sequence[Application]) -> Sequence[ApplicationRow]:
        """With their secrets in one badge."""
        return application_rows(self, found)

    def new(self) -> Link | None:
        """For whoever may register one."""
        if not self.may("application.write"):
            return None
        return self.link(say("New"), f"{self.project_href}/applications/new", say("application"))


class ApplicationForm(ConsoleForm):
    """The settings of an application, as far as its type has a use for them."""

    template = "console/application_form.html"
    fields = ("name", *_ADDRESSES, *_SEVERAL.values(), "authentication_method", "access_token_type")
    fields += (*_LIFETIMES, *_TICKS, "consent", _MAY_MANAGE)
    repeated_fields = frozenset(_SEVERAL.values())
    renamed = _SEVERAL
    missing = {"name": say("Enter a name.")}  # noqa: RUF012

    @property
    def application_type(self) -> ApplicationType | None:
        """Which type; None before one is chosen."""
        raise NotImplementedError

    def label(self) -> str:
        """The button."""
        raise NotImplementedError

    def stored_lifetimes(self) -> Mapping[str, timedelta | None]:
        """The lifetimes that the application has."""
        return {}

    def stored_consent(self) -> ConsentRule | None:
        """The rule of consent that the application has."""
        return None

    @cached_property
    def decides(self) -> bool:
        """True for who may let the application manage, and leave people unasked."""
        decides: bool = self.services.applications.may_decide(self.principal)
        return decides

    def show(self) -> Mapping[str, object]:
        """What to choose from: what the service offers."""
        choices, words, settings = self.services.choices, self.words, self.request.registry.identity.settings
        rules = [
            one for one in ConsentRule if one is not ConsentRule.NEVER or self.decides or one is self.stored_consent()
        ]
        return {
            "type": self.application_type,
            "type_label": "" if self.application_type is None else words.t(TYPES[self.application_type].label),
            "types": TYPES,
            "first_step": self.form_path() if self.creates else "",
            "response_types": literal_options(choices.response_types, RESPONSE_TYPES, words),
            "grant_types": literal_options(choices.grant_types, GRANT_TYPES, words),
            "methods": literal_options(choices.authentication_methods, AUTHENTICATION_METHODS, words),
            "token_types": [
                (TokenFormat.OPAQUE.value, words.t("Opaque")),
                (TokenFormat.JWT.value, words.t("JWT")),
            ],
            "consents": [(one.value, words.t(CONSENT[one])) for one in rules],
            "decides": self.decides,
            "usual": {name: minutes(getattr(settings, name)) for name in _LIFETIMES},
            "label": words.t(self.label()),
            "back": self.trail()[-1][1],
        }

    def check(self, form: Form) -> None:
        """The addresses and lifetimes, while they are typed. Raises Invalid."""
        problems = self._address_problems(form)
        for name in _LIFETIMES:
            if form.one(name) and self._lifetime(form, name) is None:
                problems[name] = _MINUTES[name]
        if problems:
            raise Invalid(problems)

    def command(self, kind: type[Decoded], form: Form, **known: object) -> Decoded:
        """The command made from what was typed. Raises Invalid for all that is wrong at once."""
        values: dict[str, object] = {"name": form.one("name"), **known}
        values |= {name: lines(form.one(name)) for name in _ADDRESSES}
        values |= {name: frozenset(form.several(field)) for name, field in _SEVERAL.items()}
        values |= {name: bool(form.one(name)) for name in _TICKS}
        values |= {name: self._lifetime(form, name) for name in _LIFETIMES}
        chosen = ("authentication_method", "access_token_type", "consent")
        values |= {name: form.one(name) for name in chosen if form.one(name)}
        if self.decides:
            values[_MAY_MANAGE] = bool(form.one(_MAY_MANAGE))
        if self.application_type is ApplicationType.API:
            values = {name: value for name, value in values.items() if name not in _OF_PEOPLE}
        problems: dict[str, str] = {}
        try:
            self.check(form)
        except Invalid as refused:
            problems |= refused.fields
        try:
            command = self.decoded(kind, values)
        except Invalid as refused:
            raise Invalid({**refused.fields, **problems}) from None
        if problems:
            raise Invalid(problems)
        return command

    def _address_problems(self, form: Form) -> dict[str, str]:
        problems: dict[str, str] = {}
        kind, development = self.application_type, bool(form.one("development"))
        if kind is None:
            return problems
        for name in _ADDRESSES:
            for uri in lines(form.one(name)):
                problem = redirect_uri_problem(uri, type=kind, development=development)
                if problem is not None:
                    problems.setdefault(name, problem)
        return problems

    def _lifetime(self, form: Form, name: str) -> timedelta | None:
        """What was typed; None for nothing, and for what is no lifetime. Other than whole minutes, as programs may
        set them, stays as it is."""
        text, stored = form.one(name).strip(), self.stored_lifetimes().get(name)
        if stored is not None and text == minutes(stored):
            return stored
        if not text.isascii() or not text.isdecimal() or len(text) > 5:
            return None
        typed = int(text) * _MINUTE
        return typed if timedelta() < typed <= LONGEST_TOKEN_LIFETIME else None


class NewApplication(OfProject, ApplicationForm):
    """Step 1: choose the type. Step 2: the rest, with defaults that fit the type."""

    creates = True

    def title(self) -> str:
        """The heading."""
        return say("New application")

    def trail(self) -> Sequence[tuple[str, str]]:
        """The project and its applications."""
        return [*super().trail(), (say("Applications"), f"{self.project_href}/applications")]

    @property
    def application_type(self) -> ApplicationType | None:
        """The type that the address names."""
        named = self.request.GET.get(TYPE, "")
        return ApplicationType(named) if named in {*ApplicationType} else None

    def label(self) -> str:
        """The button."""
        return say("Register")

    def values(self) -> Mapping[str, Value]:
        """What is right for nearly all applications of the type."""
        if self.application_type is None:
            return {}
        usual = self.services.applications.defaults(self.application_type)
        return {
            **{field: tuple(sorted(usual.get(name, ()))) for name, field in _SEVERAL.items()},
            "authentication_method": usual["authentication_method"],
            "access_token_type": TokenFormat.OPAQUE.value,
            "consent": ConsentRule.WHEN_FOREIGN.value,
        }

    def submit(self, form: Form) -> Response:
        """Register it. Its secret, if it has one, is shown in the answer alone: there is nothing to redirect to."""
        if self.application_type is None:
            return self.redirect(self.form_path())
        command = self.command(RegisterApplication, form, type=self.application_type)
        self.use_once(form, ALREADY)
        application, secret = self.services.applications.register(self.project.id, command, by=self.principal)
        href = f"{CONSOLE}/applications/{application.id}"
        if secret is None:
            return self.redirect(self.done(href))
        shown = {"client_id": application.id, "secret": secret, "back": href}
        registered = self.words.t("Application registered")
        return self.draw({**shown, "title": registered}, template="console/secret_added.html")


class OfApplication(ConsolePage):
    """A page about one application."""

    section = "projects"

    @property
    def application(self) -> Application:
        """Which one."""
        application: Application = self.context.value
        return application

    @cached_property
    def project(self) -> Project:
        """Whose."""
        project: Project = self.services.projects.get(self.application.project_id)
        return project

    @property
    def href(self) -> str:
        """The address of its page."""
        return f"{CONSOLE}/applications/{self.application.id}"

    def trail(self) -> Sequence[tuple[str, str]]:
        """The project and, below it, the application."""
        return [*project_trail(self, self.project), (self.application.name, self.href)]


class ApplicationPage(OfApplication):
    """All about one: what it is set up with here, and what it has to be set up with there."""

    template = "console/application.html"

    def title(self) -> str:
        """Its name."""
        return self.application.name

    def trail(self) -> Sequence[tuple[str, str]]:
        """Below the project."""
        return super().trail()[:-1]

    def show(self) -> Mapping[str, object]:
        """With its secrets, and the addresses of the service."""
        application, identity = self.application, self.request.registry.identity
        return {
            "application": application,
            "href": self.href,
            "badge": state_badge(application.active, self.words),
            "project": self.project,
            "type": self.words.t(TYPES[application.type].label),
            "people": application.type is not ApplicationType.API,
            "consent": self.words.t(CONSENT[application.consent]),
            "lifetimes": {
                name: minutes(getattr(application, name) or getattr(identity.settings, name)) for name in _LIFETIMES
            },
            "secrets": self.services.applications.secrets(application.id),
            "issuer": identity.settings.issuer_url,
            "discovery": identity.settings.issuer_url + metadata.ENDPOINT.path,
            "endpoints": self._endpoints(metadata.members(identity.protocol, identity.settings)),
        }

    def _endpoints(self, document: Mapping[str, Any]) -> list[tuple[str, str]]:
        return [(self.words.t(label), document[name]) for name, label in _ENDPOINTS.items() if name in document]


class ChangeApplicationPage(OfApplication, ApplicationForm):
    """Changes the settings; the type stays."""

    @property
    def application_type(self) -> ApplicationType:
        """Its type."""
        return self.application.type

    def title(self) -> str:
        """The heading."""
        return say("Change {name}", name=self.application.name)

    def label(self) -> str:
        """The button."""
        return say("Save")

    def stored_consent(self) -> ConsentRule:
        """Its own."""
        return self.application.consent

    def stored_lifetimes(self) -> Mapping[str, timedelta | None]:
        """Its own lifetimes."""
        return {name: getattr(self.application, name) for name in _LIFETIMES}

    def values(self) -> Mapping[str, Value]:
        """What is stored, and in which version."""
        application = self.application
        return {
            "name": application.name,
            **{name: "\n".join(getattr(application, name)) for name in _ADDRESSES},
            **{field: tuple(sorted(getattr(application, name))) for name, field in _SEVERAL.items()},
            "authentication_method": application.authentication_method,
            "access_token_type": application.access_token_type.value,
            "consent": application.consent.value,
            **{name: "" if span is None else minutes(span) for name, span in self.stored_lifetimes().items()},
            **{name: YES for name in (*_TICKS, _MAY_MANAGE) if getattr(application, name)},
            VERSION: str(application.version),
        }

    def submit(self, form: Form) -> Response:
        """Save it."""
        command = self.command(ChangeApplication, form)
        version = version_of(form.one(VERSION))
        self.services.applications.change(self.application.id, command, by=self.principal, expected_version=version)
        return self.redirect(self.done(self.href))


class _Confirm(OfApplication, ConfirmPage):
    def back(self) -> str:
        return self.href


class Deactivate(DeactivatePage, _Confirm):
    """Asks before it stops working."""

    def question(self) -> str:
        """With its name."""
        return say("Deactivate the application “{name}”?", name=self.application.name)

    def effects(self) -> Sequence[str]:
        """What stops."""
        return [
            say("Nobody signs in to it, and it gets and checks no tokens."),
            say("You can reactivate it later."),
        ]

    def label(self) -> str:
        """The button."""
        return say("Deactivate application")

    def act(self) -> str:
        """Do it."""
        self.services.applications.deactivate(self.application.id, by=self.principal)
        return self.href


class Reactivate(ReactivatePage, _Confirm):
    """Asks before it works again."""

    def question(self) -> str:
        """With its name."""
        return say("Reactivate the application “{name}”?", name=self.application.name)

    def effects(self) -> Sequence[str]:
        """What works again."""
        return [say("People sign in to it again, and its secrets work again.")]

    def label(self) -> str:
        """The button."""
        return say("Reactivate application")

    def act(self) -> str:
        """Do it."""
        self.services.applications.reactivate(self.application.id, by=self.principal)
        return self.href


class Delete(_Confirm):
    """Asks for the name before it is gone for ever."""

    def question(self) -> str:
        """With its name."""
        return say("Delete the application “{name}”?", name=self.application.name)

    def effects(self) -> Sequence[str]:
        """In numbers."""
        return [
            say("This cannot be undone. Its client id never works again."),
            *effect_words(self.services.effects.of_application(self.application.id), self),
        ]

    def label(self) -> str:
        """The button."""
        return say("Delete application")

    def name_to_type(self) -> str:
        """Its name."""
        return self.application.name

    def act(self) -> str:
        """Do it."""
        href = f"{CONSOLE}/projects/{self.application.project_id}"
        self.services.applications.remove(self.application.id, by=self.principal)
        return href


def lines(text: str) -> tuple[str, ...]:
    """What stands in a field with one thing a line."""
    return tuple(line.strip() for line in text.split("\n") if line.strip())


def minutes(span: timedelta) -> str:
    """A lifetime as the form has it."""
    return f"{span / _MINUTE:.2f}".rstrip("0").rstrip(".")


_LIST = "/projects/{project}/applications"
_ONE = "/applications/{application}"

PLACES = (
    Place(_LIST, ApplicationList, "application.read", targets.project),
    Place(f"{_LIST}/new", NewApplication, "application.write", targets.project),
    Place(_ONE, ApplicationPage, "application.read", targets.application),
    Place(f"{_ONE}/edit", ChangeApplicationPage, "application.write", targets.application),
    Place(f"{_ONE}/deactivate", Deactivate, "application.write", targets.application),
    Place(f"{_ONE}/reactivate", Reactivate, "application.write", targets.application),
    Place(f"{_ONE}/delete", Delete, "application.delete", targets.application),
)
