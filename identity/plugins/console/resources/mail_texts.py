"""Texts of mails of the instance and of organizations: list, and a form with a preview for each mail and language."""

from collections.abc import Mapping
from dataclasses import fields, replace

from pyramid.response import Response

from identity.api.plugins import cached_property
from identity.domain.errors import Invalid, NotFound
from identity.domain.mail_texts import (
    INSTANCE_ONLY_KINDS,
    NO_MAIL_TEXT,
    MailKind,
    MailText,
    mail_text_errors,
    mail_text_placeholders,
    normalize_mail_text,
)
from identity.domain.messages import LANGUAGES
from identity.domain.messages import gettext_lazy as _
from identity.domain.organizations import Organization
from identity.domain.users import HumanUser
from identity.http import route_contexts
from identity.pages.forms import FieldValue, Form, FormMessage
from identity.pages.layout import NavigationItem
from identity.pages.mail_text_preview import render_sample_mail
from identity.pages.page import FormRedisplay
from identity.pages.translation import Translator
from identity.plugins.console.console_page import CONSOLE_PATH, Breadcrumbs, ConsolePage
from identity.plugins.console.fields.mail_texts import MAIL_LABELS, MAIL_TEXT_FIELDS
from identity.plugins.console.form_page import ConsoleFormPage
from identity.plugins.console.page_sections import TableSection
from identity.plugins.console.resource_types import ORGANIZATION
from identity.plugins.console.resources.branding import BRANDING_PATH
from identity.plugins.console.routes import ConsoleRoute
from identity.services.commands.mail_texts import ChangeMailTexts
from identity.services.mails import MailReason

MAIL_TEXTS_PATH = "/mail-texts"
MAIL_TEXTS_TITLE = _("Texts of mails")
_INSTANCE_SECTION = f"instance{MAIL_TEXTS_PATH}"
_ACTION_FIELD = "action"


class MailTextsPage(ConsolePage):
    """Each mail with the languages that have a text of their own."""

    template = "console/detail.html"

    @property
    def title(self) -> str:
        return MAIL_TEXTS_TITLE

    @cached_property
    def owner(self) -> Organization | None:
        """None for the instance."""
        entity = self.context.entity
        return entity if isinstance(entity, Organization) else None

    @property
    def is_instance_page(self) -> bool:
        return self.owner is None

    @property
    def section(self) -> str:
        return _INSTANCE_SECTION if self.owner is None else ""

    @property
    def list_path(self) -> str:
        return f"{CONSOLE_PATH}/{_INSTANCE_SECTION}" if self.owner is None else f"{self.base_path}{MAIL_TEXTS_PATH}"

    @property
    def breadcrumbs(self) -> Breadcrumbs:
        if self.owner is None:
            return ()
        custom = ORGANIZATION.breadcrumbs(self, self.owner)
        return [*custom, (_("Branding"), f"{ORGANIZATION.path_of(self.owner)}{BRANDING_PATH}")]

    @property
    def kinds(self) -> list[MailKind]:
        return [kind for kind in MailKind if self.owner is None or kind not in INSTANCE_ONLY_KINDS]

    def template_variables(self) -> Mapping[str, object]:
        lead = (
            _("Your words around what the service says, for all organizations. An organization can have its own.")
            if self.owner is None
            else _("Your words around what the service says. They replace those of the instance.")
        )
        texts = self.services.mail_texts.get(self.owner)
        rows = [
            (
                self.template_macros.named(
                    self.translate(MAIL_LABELS[kind]), f"{self.list_path}/{kind}/{self.language}"
                ),
                self.translator.format_list(
                    [Translator.LANGUAGE_NAMES[item] for item in LANGUAGES if texts.find(kind, item) is not None]
                ),
            )
            for kind in self.kinds
        ]
        table = TableSection("mails", _("Mails"), columns=(_("Mail"), _("Own text in")), rows=rows)
        return {
            "lead": [self.translate(lead)],
            "badges": (),
            "actions": (),
            "mark": "",
            "more_items": (),
            "facts": (),
            "tabs": (),
            "sections_of": [table],
            "said": self.translate,
        }


class MailTextPage(MailTextsPage, ConsoleFormPage):
    """One mail in one language. Further buttons render a preview, send the mail to oneself, or bring the usual text
    back."""

    template = "console/mail_text.html"
    form_fields = MAIL_TEXT_FIELDS
    #: The typed text, once it was read.
    _typed: MailText | None = None

    @cached_property
    def kind(self) -> MailKind:
        name = self.request.matchdict["kind"]
        if name not in self.kinds:
            raise NotFound("mail", name)
        return MailKind(name)

    @cached_property
    def text_language(self) -> str:
        language: str = self.request.matchdict["language"]
        if language not in LANGUAGES:
            raise NotFound("language", language)
        return language

    @property
    def title(self) -> str:
        label = self.translator.gettext(MAIL_LABELS[self.kind])
        return label if self.owner is None else f"{label} – {self.owner.name}"

    @property
    def breadcrumbs(self) -> Breadcrumbs:
        return [*super().breadcrumbs, (MAIL_TEXTS_TITLE, self.list_path)]

    @property
    def cancel_path(self) -> str:
        return self.list_path

    @property
    def stored_text(self) -> MailText | None:
        return self.services.mail_texts.get(self.owner).find(self.kind, self.text_language)

    def initial_values(self) -> Mapping[str, FieldValue]:
        text, version = self.stored_text or NO_MAIL_TEXT, self.services.mail_texts.get(self.owner).version
        return {**{item.name: getattr(text, item.name) for item in fields(text)}, Form.VERSION_FIELD: str(version)}

    def template_variables(self) -> Mapping[str, object]:
        translator = self.renderer.catalogs.translator(self.text_language)
        inherited = self.services.mail_texts.effective(self.owner, self.kind, self.text_language)
        text = inherited if self._typed is None else self._typed
        if self._typed is not None and text.is_empty:
            text = self.services.mail_texts.effective(None, self.kind, self.text_language)
        return {
            **ConsoleFormPage.template_variables(self),
            "sample": render_sample_mail(self.request, self.kind, text, self.owner, translator),
            "text_language": self.text_language,
            "languages": [
                NavigationItem(
                    label=Translator.LANGUAGE_NAMES[item],
                    href=f"{self.list_path}/{self.kind}/{item}",
                    is_current=item == self.text_language,
                )
                for item in LANGUAGES
            ],
            "placeholders": [f"{{{name}}}" for name in mail_text_placeholders(self.kind)],
            "has_own": self.stored_text is not None,
            "address": self._own_address if self.services.mails.is_enabled else "",
        }

    def submit(self, form: Form) -> Response:
        action = form.text(_ACTION_FIELD)
        if action == "reset":
            return self._save(None, form.version())
        text = normalize_mail_text(MailText(**form.command_values(*(item.name for item in fields(MailText)))))
        problems = mail_text_errors(self.kind, text, allows_links=self.owner is None)
        if problems:
            raise Invalid(problems)
        self._typed = text
        if action == "preview":
            return self._redisplay(form, status=200)
        if action == "test":
            return self._send_test(form, text)
        return self._save(text, form.version())

    def _save(self, text: MailText | None, version: int) -> Response:
        custom = None if text is None else {item.name: getattr(text, item.name) for item in fields(text)}
        command = ChangeMailTexts.decode({"texts": {self.kind.value: {self.text_language: custom}}})
        self.services.mail_texts.change(self.owner, command, principal=self.principal, expected_version=version)
        return self.redirect(self.path_with_flash(self.list_path))

    def _send_test(self, form: Form, text: MailText) -> Response:
        address = self._own_address
        if not address or not self.services.mails.is_enabled:
            raise FormRedisplay(_("Verify your own email address first."))
        self.services.mail_texts.record_test(self.owner, self.kind, principal=self.principal)
        translator = self.renderer.catalogs.translator(self.text_language)
        sample = render_sample_mail(self.request, self.kind, text, self.owner, translator)
        queued = self.services.mails.queue(
            replace(sample.mail, to=address), MailReason.TEST, verified_by=self.subject.user.id
        )
        if not queued:
            raise FormRedisplay(_("This address has got several test mails. Try again in an hour."), status=429)
        notice = FormMessage("success", self.translator.gettext("The mail is on its way to you."))
        return self._redisplay(form, status=200, notice=notice)

    @property
    def _own_address(self) -> str:
        """Empty unless it is verified: test mails go to the manager's own mailbox only."""
        user = self.subject.user
        return user.profile.email if isinstance(user, HumanUser) and user.profile.email_verified else ""


ROUTES = (
    ConsoleRoute(f"/{_INSTANCE_SECTION}", MailTextsPage, "instance.write", route_contexts.instance_context),
    ConsoleRoute(
        f"/{_INSTANCE_SECTION}/{{kind}}/{{language}}", MailTextPage, "instance.write", route_contexts.instance_context
    ),
    ORGANIZATION.route(MAIL_TEXTS_PATH, MailTextsPage, "write"),
    ORGANIZATION.route(f"{MAIL_TEXTS_PATH}/{{kind}}/{{language}}", MailTextPage, "write"),
)
