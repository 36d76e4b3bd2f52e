"""Forms of applications, made from what the entity declares: register one in two steps, and change it.

What its type has no use for is left out, as is what only others decide.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import timedelta

from pyramid.response import Response

from identity.domain.applications import Application, ApplicationType, ConsentRule, redirect_uri_problem
from identity.domain.entity import members
from identity.domain.errors import Invalid
from identity.domain.rules import LONGEST_TOKEN_LIFETIME
from identity.domain.users import TokenFormat
from identity.domain.words import say
from identity.http import targets
from identity.lazily import lazily
from identity.pages.forms import Form, Value
from identity.plugins.console.application_words import EXAMPLES, FIRST, OPTIONS, TYPES
from identity.plugins.console.console_form import ChangePage, ConsoleForm
from identity.plugins.console.console_page import CONSOLE, Trail
from identity.plugins.console.expirations import ALREADY
from identity.plugins.console.fields import Field, fields_of, lines, minutes
from identity.plugins.console.places import Place, of_things
from identity.plugins.console.things import OfApplication, OfProject
from identity.services.commands import Decoded
from identity.services.commands.applications import ChangeApplication, RegisterApplication

#: The parameter that names the type in the second step of the registration.
TYPE = "type"

_ADDRESSES = ("redirect_uris", "post_logout_redirect_uris")
_MINUTE = timedelta(minutes=1)
_MOST = LONGEST_TOKEN_LIFETIME // _MINUTE
#: In a list of errors each has to tell which lifetime it is.
_MINUTES = {
    "access_token_lifetime": say("Enter the lifetime of access tokens as minutes from 1 to {most}.", most=_MOST),
    "id_token_lifetime": say("Enter the lifetime of ID tokens as minutes from 1 to {most}.", most=_MOST),
}
_AS_EVERYWHERE = say("In minutes. Empty: {n}, as everywhere.")


_FIELDS = tuple(
    replace(one, required=True) if one.name == "redirect_uris" else one
    for one in fields_of(Application, *FIRST, options=OPTIONS)
)


class ApplicationForm(ConsoleForm):
    """The settings of an application, as far as its type has a use for them."""

    template = "console/application_form.html"
    inputs = _FIELDS
    #: The stored rule of consent, and the stored lifetimes.
    stored_consent: ConsentRule | None = None
    stored_lifetimes: Mapping[str, timedelta | None] = {}

    @property
    def application_type(self) -> ApplicationType | None:
        """Which type; None before one is chosen."""
        raise NotImplementedError

    @lazily
    def decides(self) -> bool:
        """True for who may leave people unasked."""
        return bool(self.services.applications.may_decide(self.principal))

    def drawn(self) -> Sequence[Field]:
        known, kind = members(Application), self.application_type
        useful = (one for one in self.inputs if known[one.member].is_for(kind))
        permitted = (one for one in useful if self.decides or not known[one.member].declared.permission)
        return [replace(one, hint=self._hint(one)) for one in permitted]

    def _hint(self, one: Field) -> str:
        kind = self.application_type
        if one.name == "redirect_uris" and kind in EXAMPLES:
            return say(
                "Where people return after signing in, one address a line, exactly as the application sends it. For"
                " example {example}",
                example=EXAMPLES[kind],
            )
        if one.name == "name":
            signs_in = say("Shown to people who sign in to it.")
            return say("Shown in lists and in audit events.") if kind is ApplicationType.API else signs_in
        if one.name in _MINUTES:
            usual = minutes(getattr(self.request.registry.identity.settings, one.name))
            return self.words.t(_AS_EVERYWHERE, n=usual)
        return one.hint

    def show(self) -> Mapping[str, object]:
        kind = self.application_type
        first = {
            "type": kind,
            "type_label": "" if kind is None else self.words.t(TYPES[kind].label),
            "types": TYPES,
            "first_step": self.form_path() if self.creates else "",
            "check": True,
        }
        return first if kind is None else {**super().show(), **first}

    def check(self, form: Form) -> None:
        """The addresses and lifetimes, while they are typed. Raises Invalid."""
        problems = self._address_problems(form)
        for name, sentence in _MINUTES.items():
            if form.one(name) and self._lifetime(form, name) is None:
                problems[name] = sentence
        if problems:
            raise Invalid(problems)

    def typed(self, form: Form) -> dict[str, object]:
        values = super().typed(form)
        return {**values, **{name: self._lifetime(form, name) for name in _MINUTES if name in values}}

    def command_from(self, kind: type[Decoded], form: Form, **known: object) -> Decoded:
        """Raises Invalid for all that is wrong at once."""
        problems: dict[str, str] = {}
        try:
            self.check(form)
        except Invalid as refused:
            problems |= refused.fields
        try:
            command = super().command_from(kind, form, **known)
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
        text, stored = form.one(name).strip(), self.stored_lifetimes.get(name)
        if stored is not None and text == minutes(stored):
            return stored
        if not text.isascii() or not text.isdecimal() or len(text) > 5:
            return None
        typed = int(text) * _MINUTE
        return typed if timedelta() < typed <= LONGEST_TOKEN_LIFETIME else None


class NewApplication(OfProject, ApplicationForm):
    """Step 1: choose the type. Step 2: the rest, with defaults that fit the type."""

    below = "/applications"
    creates = True
    title = say("New application")
    label = say("Register")

    @property
    def trail(self) -> Trail:
        return [*super().trail, (say("Applications"), self.back)]

    @property
    def application_type(self) -> ApplicationType | None:
        named = self.request.GET.get(TYPE, "")
        return ApplicationType(named) if named in {*ApplicationType} else None

    def values(self) -> Mapping[str, Value]:
        if self.application_type is None:
            return {}
        usual = self.services.applications.defaults(self.application_type)
        chosen = {one.name: tuple(sorted(usual.get(one.member, ()))) for one in self.inputs if one.several}
        return {
            **chosen,
            "authentication_method": usual["authentication_method"],
            "access_token_type": TokenFormat.OPAQUE.value,
            "consent": ConsentRule.WHEN_FOREIGN.value,
        }

    def submit(self, form: Form) -> Response:
        """Register it. Its secret, if it has one, is shown in the answer alone: there is nothing to redirect to."""
        if self.application_type is None:
            return self.redirect(self.form_path())
        command = self.command_from(RegisterApplication, form, type=self.application_type)
        self.use_once(form, ALREADY)
        application, secret = self.services.applications.register(self.thing.id, command, by=self.principal)
        href = f"{CONSOLE}/applications/{application.id}"
        if secret is None:
            return self.redirect(self.done(href))
        shown = {"client_id": application.id, "secret": secret, "back": href}
        registered = self.words.t("Application registered")
        return self.draw({**shown, "title": registered}, template="console/secret_added.html")


class ChangeApplicationPage(OfApplication, ApplicationForm, ChangePage):
    """Changes the settings; the type stays."""

    command = ChangeApplication

    @property
    def application_type(self) -> ApplicationType:
        return self.thing.type

    @property
    def stored_consent(self) -> ConsentRule:  # type: ignore[override]
        return self.thing.consent

    @property
    def stored_lifetimes(self) -> Mapping[str, timedelta | None]:  # type: ignore[override]
        return {name: getattr(self.thing, name) for name in _MINUTES}


PLACES = (
    Place("/projects/{project}/applications/new", NewApplication, "application.write", targets.project),
    *of_things(ChangeApplicationPage),
)
