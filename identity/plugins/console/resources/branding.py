"""Branding of an organization or an application: a form with a preview, and logo uploads."""

import base64
from collections.abc import Mapping
from email.utils import parseaddr
from typing import Any

from markupsafe import Markup
from pyramid.response import Response

from identity.domain.applications import Application
from identity.domain.branding import DEFAULT_BRANDING, TEXT_FIELDS, TEXT_VALIDATORS, Branding, merge_branding
from identity.domain.errors import Invalid
from identity.domain.messages import LANGUAGES
from identity.domain.messages import gettext_lazy as _
from identity.pages.branding_preview import preview_variables
from identity.pages.forms import FieldValue, Form
from identity.pages.page_branding import build_page_branding
from identity.pages.translation import Translator
from identity.plugins.console.fields.branding import BRANDING_FIELDS
from identity.plugins.console.form_fields import (
    LITERAL_INPUT_ATTRIBUTES,
    FormField,
    TextArea,
    change_field,
    form_fields,
)
from identity.plugins.console.form_page import ConsoleFormPage
from identity.plugins.console.page_sections import ActionSection, DescriptionListSection, Descriptions, PageSection
from identity.plugins.console.resource_types import APPLICATION, ORGANIZATION, AnyResourceType, ResourcePage
from identity.plugins.console.upload_page import UploadFormPage
from identity.services.commands.branding import ChangeBranding
from identity.services.images import MAX_UPLOAD_BYTES

#: The tab of organizations and applications; pages that change something are below it.
BRANDING_PATH = "/branding"
_LOGO_FIELD, _DARK_LOGO_FIELD, _REMOVE_FIELD = "logo", "logo_dark", "remove"
_PREVIEW_FIELD, _LANGUAGE_FIELD = "preview", "preview_language"
#: Allowance for the multipart body besides the file.
_MULTIPART_OVERHEAD_BYTES = 16 * 1024

_MULTILINE_FIELDS = frozenset({"mail_intro", "mail_footer"})


def _branding_fields() -> tuple[FormField, ...]:
    plain = form_fields(Branding, {name: label for name, label in BRANDING_FIELDS.items() if name not in TEXT_FIELDS})
    for name in ("accent", "accent_dark"):
        plain = change_field(plain, name, attributes={**LITERAL_INPUT_ATTRIBUTES, "data-colour": ""})
    texts = [
        (TextArea if name in _MULTILINE_FIELDS else FormField)(
            f"{name}_{language}",
            BRANDING_FIELDS[name].label,
            BRANDING_FIELDS[name].hint,
            required=False,
            fieldset=Translator.LANGUAGE_NAMES[language],
            attributes={"lang": language, **({"rows": 3} if name in _MULTILINE_FIELDS else {"autocomplete": "off"})},
        )
        for language in LANGUAGES
        for name in TEXT_FIELDS
    ]
    return (*plain, *texts)


class BrandingPage(ResourcePage[Any]):
    """``entity`` is the organization or the application."""

    back_path_suffix = BRANDING_PATH

    @property
    def branding(self) -> Branding:
        return self.services.branding.own_branding(self.entity)


class BrandingEditPage(BrandingPage, ConsoleFormPage):
    """The second button renders a preview without saving; a script triggers it on input."""

    template = "console/branding_edit.html"
    title = _("Branding of {name}")
    form_fields = _branding_fields()
    #: The submitted form, once it was read.
    _sent: Form | None = None

    def initial_values(self) -> Mapping[str, FieldValue]:
        branding = self.branding
        plain = {field.name: str(getattr(branding, field.name)) for field in self.form_fields if not field.fieldset}
        texts = {
            f"{name}_{language}": getattr(branding, name).get(language, "")
            for name in TEXT_FIELDS
            for language in LANGUAGES
        }
        return {**plain, **texts, Form.VERSION_FIELD: str(self.entity.version)}

    def parse_form(self, form: Form) -> dict[str, object]:
        plain = {field.name: form.text(field.name) for field in self.form_fields if not field.fieldset}
        texts = {
            name: {language: text for language in LANGUAGES if (text := form.text(f"{name}_{language}"))}
            for name in TEXT_FIELDS
        }
        return {**plain, **texts}

    def template_variables(self) -> Mapping[str, object]:
        form = self._sent
        branding = self.branding
        if form is not None:
            # Without invalid values.
            typed = self.parse_form(form)
            command = self._decode_branding(form, typed)[0]
            branding = self.services.branding.preview_change(self.entity, command)
        return {
            **super().template_variables(),
            **self._preview_variables(branding),
            "languages": list(Translator.LANGUAGE_NAMES.items()),
            "logo_href": f"{self.resource_path}{BRANDING_PATH}/logo",
        }

    def submit(self, form: Form) -> Response:
        """Save, or redisplay with a preview."""
        command, problems = self._decode_branding(form, self.parse_form(form))
        if problems:
            raise Invalid(problems)
        if form.text(_PREVIEW_FIELD):
            return self._redisplay(form, status=200)
        version = form.version()
        self.services.branding.change(self.entity, command, principal=self.principal, expected_version=version)
        return self.redirect(self.path_with_flash(self.success_path))

    def _read_form(self) -> Form:
        self._sent = super()._read_form()
        return self._sent

    def _decode_branding(self, form: Form, typed: dict[str, object]) -> tuple[ChangeBranding, dict[str, str]]:
        """The command without invalid values, and the problems by field. Texts are checked one language at a time."""
        problems = {
            f"{name}_{language}": problem
            for name, rule in TEXT_VALIDATORS.items()
            for language in LANGUAGES
            if (text := form.text(f"{name}_{language}").strip()) and (problem := rule(text))
        }
        for name in TEXT_FIELDS:
            texts: Any = typed[name]
            typed[name] = {item: text for item, text in texts.items() if f"{name}_{item}" not in problems}
        try:
            return ChangeBranding.decode(typed), problems
        except Invalid as refused:
            good = {name: value for name, value in typed.items() if name not in refused.fields}
            return ChangeBranding.decode(good), {**refused.fields, **problems}

    def _preview_variables(self, branding: Branding) -> Mapping[str, object]:
        """In the language that was chosen for the preview."""
        requested_language = "" if self._sent is None else self._sent.text(_LANGUAGE_FIELD)
        translator = self.renderer.catalogs.translator(
            requested_language if requested_language in LANGUAGES else self.language
        )
        organization, of_application = self.organization, isinstance(self.entity, Application)
        lower = (
            DEFAULT_BRANDING
            if organization is None or not of_application
            else self.services.branding.own_branding(organization)
        )
        called = "" if organization is None else organization.name
        owner = self.entity.id if branding.logo or not of_application else getattr(organization, "id", "")
        looks = build_page_branding(
            merge_branding(branding, lower), translator.language, logo_owner_id=owner, fallback_name=called
        )
        domain = "acme.example" if organization is None else organization.primary_domain
        display_name = branding.display_name or self.entity_name
        application = display_name if of_application else str(translator.gettext("Your application"))
        sender = self.services.mail_server.effective().server.sender
        return {
            **preview_variables(self.request, looks, translator, login_name=f"anna@{domain}"),
            "preview_application": application,
            "preview_organization": (lower.display_name if of_application else branding.display_name) or called,
            "preview_sender": parseaddr(sender)[0] or self.renderer.brand_name,
            "preview_language": translator.language,
        }


class LogoUploadPage(BrandingPage, UploadFormPage):
    template = "console/logo_upload.html"
    title = _("Logo of {name}")
    fields = (_LOGO_FIELD,)
    file_field = _LOGO_FIELD
    hint = _(
        "PNG, WebP or SVG, up to {n} KiB. It is shown 40 pixels high on a light background. "
        "Anything that could run code or load content is removed."
    )
    max_bytes = MAX_UPLOAD_BYTES + _MULTIPART_OVERHEAD_BYTES

    @property
    def too_large_message(self) -> str:
        return _("The picture is larger than {n} KiB.", n=MAX_UPLOAD_BYTES // 1024)

    def initial_values(self) -> Mapping[str, FieldValue]:
        return {Form.VERSION_FIELD: str(self.entity.version)}

    def template_variables(self) -> Mapping[str, object]:
        branding = self.branding
        looks = build_page_branding(
            branding, self.language, logo_owner_id=self.entity.id, fallback_name=self.entity_name
        )
        return {
            **super().template_variables(),
            "logo": getattr(looks, self.file_field) if getattr(branding, self.file_field) else "",
            "field": self.file_field,
            "hint": self.translator.gettext(self.hint, n=MAX_UPLOAD_BYTES // 1024),
            "dark_href": f"{self.resource_path}{BRANDING_PATH}/logo-dark"
            if branding.logo and self.file_field == _LOGO_FIELD
            else "",
        }

    def submit(self, form: Form) -> Response:
        """Sanitize and store the logo."""
        file = self.files.get(self.file_field)
        if file is None and not form.text(_REMOVE_FIELD):
            raise Invalid({self.file_field: _("Choose a PNG, WebP or SVG file.")})
        sent = "" if file is None or form.text(_REMOVE_FIELD) else base64.b64encode(file.read()).decode()
        command, version = ChangeBranding.decode({self.file_field: sent}), form.version()
        self.services.branding.change(self.entity, command, principal=self.principal, expected_version=version)
        return self.redirect(self.path_with_flash(self.success_path))


class DarkLogoUploadPage(LogoUploadPage):
    """Replaces the logo on dark pages, where it would otherwise need a light background."""

    title = _("Logo of {name} for dark pages")
    fields = (_DARK_LOGO_FIELD,)
    file_field = _DARK_LOGO_FIELD
    hint = _("PNG, WebP or SVG, up to {n} KiB. Without it, dark pages show the other logo on a light background.")


def branding_section(page: ResourcePage[Any]) -> PageSection:
    branding = page.services.branding.own_branding(page.entity)
    looks = build_page_branding(branding, page.language, logo_owner_id=page.entity.id, fallback_name=page.entity_name)
    languages = {name: [Translator.LANGUAGE_NAMES[item] for item in getattr(branding, name)] for name in TEXT_FIELDS}
    facts: Descriptions = [
        *(
            (BRANDING_FIELDS[name].label, getattr(branding, name))
            for name in BRANDING_FIELDS
            if name not in TEXT_FIELDS
        ),
        (_("Logo"), Markup('<img class="brand__logo" src="{}" alt="{}">').format(looks.logo, looks.name))
        if branding.logo
        else (_("Logo"), ""),
        (
            _("Logo on dark pages"),
            Markup('<span class="on-dark"><img class="brand__logo brand__logo--both" src="{}" alt="{}"></span>').format(
                looks.logo_dark, looks.name
            )
            if looks.logo_dark
            else "",
        ),
        *((BRANDING_FIELDS[name].label, page.translator.format_list(found)) for name, found in languages.items()),
    ]
    change = page.button_link(
        _("Change"),
        f"{page.resource_path}{BRANDING_PATH}/edit",
        hidden_label=_("Branding"),
        permission=page.resource_type.permission("write"),
    )
    lead = _("What people see when they sign in, and in mails sent to them.")
    if branding == DEFAULT_BRANDING:
        usual = (
            _("Same as the organization's.") if isinstance(page.entity, Application) else _("Same as the service's.")
        )
        return ActionSection("looks", _("Branding"), lead, change, empty=usual)
    return DescriptionListSection("looks", _("Branding"), lead, change, facts=facts)


_OWNERS: tuple[AnyResourceType, ...] = (ORGANIZATION, APPLICATION)

ROUTES = tuple(
    owner.page_route(f"{BRANDING_PATH}{path}", page, "write")
    for path, page in (
        ("/edit", BrandingEditPage),
        ("/logo", LogoUploadPage),
        ("/logo-dark", DarkLogoUploadPage),
    )
    for owner in _OWNERS
)
