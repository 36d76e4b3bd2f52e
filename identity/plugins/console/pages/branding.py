"""Looks and words of an organization or an application: a form with a preview, and the logo on a page of its own."""

import base64
from collections.abc import Mapping
from email.utils import parseaddr
from typing import Any, ClassVar

from markupsafe import Markup
from pyramid.response import Response

from identity.domain.applications import Application
from identity.domain.branding import LOGOS, PLAIN, TEXT_RULES, TEXTS, Branding, over
from identity.domain.entity import members
from identity.domain.errors import Invalid
from identity.domain.words import LANGUAGES, say
from identity.pages.forms import VERSION, Form, Value
from identity.pages.looks import dressed
from identity.pages.looks_preview import variables
from identity.pages.signed_in_page import version_of
from identity.pages.translation import LANGUAGE_NAMES
from identity.plugins.console.console_form import ConsoleForm
from identity.plugins.console.fields import Field, Text, field_of, settings_of
from identity.plugins.console.places import of_things
from identity.plugins.console.sections import FactList, Facts, Panel, Section
from identity.plugins.console.things import OfApplication, OfOrganization, OfThing
from identity.plugins.console.upload_form import UploadForm
from identity.services.commands import decode
from identity.services.commands.branding import ChangeBranding
from identity.services.pictures import LARGEST_SENT

_LOGO, _LOGO_DARK, _REMOVE = "logo", "logo_dark", "remove"
_PREVIEW, _LANGUAGE = "preview", "preview_language"
#: What a form with a file has besides the file.
_AROUND_A_FILE = 16 * 1024

_LINES = frozenset({"mail_intro", "mail_footer"})


def _fields() -> tuple[Field, ...]:
    known = members(Branding)
    plain = [field_of(one) for one in settings_of(Branding) if one.name not in TEXTS]
    texts = [
        (Text if name in _LINES else Field)(
            f"{name}_{language}",
            known[name].declared.label,
            known[name].declared.hint,
            required=False,
            part=LANGUAGE_NAMES[language],
            attributes={"lang": language, **({"rows": 3} if name in _LINES else {"autocomplete": "off"})},
        )
        for language in LANGUAGES
        for name in TEXTS
    ]
    return (*plain, *texts)


class OfBranding(OfThing[Any]):
    """A page about how something looks."""

    action = "write"

    @property
    def branding(self) -> Branding:
        """What is set of it."""
        return self.services.branding.of(self.thing)


class BrandingPage(OfBranding, ConsoleForm):
    """The form. Its second button shows what is typed, and saves nothing; script presses it while one types."""

    at = "/branding"
    below = "#looks"
    template = "console/branding.html"
    title = say("Looks and words of {name}")
    inputs = _fields()
    #: What was sent, once it was read.
    _sent: Form | None = None

    def values(self) -> Mapping[str, Value]:
        branding = self.branding
        plain = {one.name: str(getattr(branding, one.name)) for one in self.inputs if not one.part}
        texts = {
            f"{name}_{language}": getattr(branding, name).get(language, "") for name in TEXTS for language in LANGUAGES
        }
        return {**plain, **texts, VERSION: str(self.thing.version)}

    def typed(self, form: Form) -> dict[str, object]:
        plain = {one.name: form.one(one.name) for one in self.inputs if not one.part}
        texts = {
            name: {language: text for language in LANGUAGES if (text := form.one(f"{name}_{language}"))}
            for name in TEXTS
        }
        return {**plain, **texts}

    def show(self) -> Mapping[str, object]:
        form = self._sent
        branding = self.branding
        if form is not None:
            # As far as it can be taken.
            typed = self.typed(form)
            command, _ = self._decoded(form, typed)
            branding = self.services.branding.preview(self.thing, command)
        return {
            **super().show(),
            **self._previewed(branding),
            "languages": list(LANGUAGE_NAMES.items()),
            "logo_href": f"{self.href}/branding/logo",
        }

    def submit(self, form: Form) -> Response:
        """Save it, or show it with what is typed."""
        command, problems = self._decoded(form, self.typed(form))
        if problems:
            raise Invalid(problems)
        if form.one(_PREVIEW):
            return self._again(form, status=200)
        version = version_of(form.one(VERSION))
        self.services.branding.change(self.thing, command, by=self.principal, expected_version=version)
        return self.redirect(self.done(self.done_at))

    def _read(self) -> Form:
        self._sent = super()._read()
        return self._sent

    def _decoded(self, form: Form, typed: dict[str, object]) -> tuple[ChangeBranding, dict[str, str]]:
        """The command without what is wrong, and what is wrong by field: of texts each has one of its own."""
        problems = {
            f"{name}_{language}": said
            for name, rule in TEXT_RULES.items()
            for language in LANGUAGES
            if (text := form.one(f"{name}_{language}").strip()) and (said := rule(text))
        }
        for name in TEXTS:
            texts: Any = typed[name]
            typed[name] = {one: text for one, text in texts.items() if f"{name}_{one}" not in problems}
        try:
            return decode(ChangeBranding, typed), problems
        except Invalid as refused:
            good = {name: value for name, value in typed.items() if name not in refused.fields}
            return decode(ChangeBranding, good), {**refused.fields, **problems}

    def _previewed(self, branding: Branding) -> Mapping[str, object]:
        """The template's variables, in the language that was asked for."""
        wanted = "" if self._sent is None else self._sent.one(_LANGUAGE)
        words = self.pages.catalogs.words(wanted if wanted in LANGUAGES else self.language)
        organization, of_application = self.organization, isinstance(self.thing, Application)
        lower = PLAIN if organization is None or not of_application else self.services.branding.of(organization)
        called = "" if organization is None else organization.name
        owner = self.thing.id if branding.logo or not of_application else getattr(organization, "id", "")
        looks = dressed(over(branding, lower), words.language, logo_of=owner, called=called)
        domain = "acme.example" if organization is None else organization.primary_domain
        shown = branding.display_name or self.name
        application = shown if of_application else str(words.t("Your application"))
        sender = self.request.registry.identity.settings.smtp.sender
        return {
            **variables(self.request, looks, words, login_name=f"anna@{domain}"),
            "preview_application": application,
            "preview_organization": (lower.display_name if of_application else branding.display_name) or called,
            "preview_sender": parseaddr(sender)[0] or self.pages.brand_name,
            "preview_language": words.language,
        }


class LogoPage(OfBranding, UploadForm):
    """The logo: choose another one, or remove it."""

    at = "/branding/logo"
    below = "#looks"
    template = "console/logo.html"
    title = say("Logo of {name}")
    fields = (_LOGO,)
    file_field = _LOGO
    hint = say(
        "PNG, WebP or SVG, up to {n} KiB. It is shown 40 pixels high, on a light ground. Whatever could run or load"
        " something is left out of it."
    )
    most_bytes: ClassVar[int] = LARGEST_SENT + _AROUND_A_FILE

    @property
    def too_large(self) -> str:
        return say("The picture is larger than {n} KiB.", n=LARGEST_SENT // 1024)

    def values(self) -> Mapping[str, Value]:
        return {VERSION: str(self.thing.version)}

    def show(self) -> Mapping[str, object]:
        held = self.branding
        looks = dressed(held, self.language, logo_of=self.thing.id, called=self.name)
        return {
            **super().show(),
            "logo": getattr(looks, self.file_field) if getattr(held, self.file_field) else "",
            "field": self.file_field,
            "hint": self.words.t(self.hint, n=LARGEST_SENT // 1024),
            "dark_href": f"{self.href}{DarkLogoPage.at}" if held.logo and self.file_field == _LOGO else "",
        }

    def submit(self, form: Form) -> Response:
        """Make it harmless and keep it."""
        file = self.files.get(self.file_field)
        if file is None and not form.one(_REMOVE):
            raise Invalid({self.file_field: say("Choose a PNG, WebP or SVG file.")})
        sent = "" if file is None or form.one(_REMOVE) else base64.b64encode(file.read()).decode()
        command, version = decode(ChangeBranding, {self.file_field: sent}), version_of(form.one(VERSION))
        self.services.branding.change(self.thing, command, by=self.principal, expected_version=version)
        return self.redirect(self.done(self.done_at))


class DarkLogoPage(LogoPage):
    """The logo in the place of the other one on dark pages, where that would need a light ground."""

    at = "/branding/logo-dark"
    title = say("Logo of {name} for dark pages")
    fields = (_LOGO_DARK,)
    file_field = _LOGO_DARK
    hint = say("PNG, WebP or SVG, up to {n} KiB. Without it the other logo is shown on a light ground on dark pages.")


def looks_section(page: OfThing[Any]) -> Section:
    """How it looks, on its own page, with the ways to change that."""
    branding = page.services.branding.of(page.thing)
    known = members(Branding)
    looks = dressed(branding, page.language, logo_of=page.thing.id, called=page.name)
    languages = {name: [LANGUAGE_NAMES[one] for one in getattr(branding, name)] for name in TEXTS}
    facts: Facts = [
        *((known[name].declared.label, getattr(branding, name)) for name in known if name not in (*TEXTS, *LOGOS)),
        (say("Logo"), Markup('<img class="brand__logo" src="{}" alt="{}">').format(looks.logo, looks.name))
        if branding.logo
        else (say("Logo"), ""),
        (
            say("Logo on dark pages"),
            Markup('<span class="on-dark"><img class="brand__logo brand__logo--both" src="{}" alt="{}"></span>').format(
                looks.logo_dark, looks.name
            )
            if looks.logo_dark
            else "",
        ),
        *((known[name].declared.label, page.words.listed(found)) for name, found in languages.items()),
    ]
    change = Markup()
    if page.may(f"{page.subject_of}.write"):
        change = page.link(say("Change"), f"{page.href}/branding", what=say("Looks and words"))
    lead = say("What people see who sign in, and what stands in mails to them.")
    if branding == PLAIN:
        usual = say("As the organization's.") if isinstance(page.thing, Application) else say("As the service's.")
        return Panel("looks", say("Looks and words"), lead, change, empty=usual)
    return FactList("looks", say("Looks and words"), lead, change, facts=facts)


PLACES = of_things(
    *(page.of(kind) for page in (BrandingPage, LogoPage, DarkLogoPage) for kind in (OfOrganization, OfApplication))
)
