"""The mail server of the instance: settings, test mail, and mails that wait for it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from markupsafe import Markup
from pyramid.response import Response

from identity.domain.mail_server import MailServer
from identity.domain.messages import gettext_lazy as _
from identity.domain.users import HumanUser
from identity.http import route_contexts
from identity.pages.forms import FieldValue, Form
from identity.pages.page import FormPage, FormRedisplay
from identity.plugins.console.badges import Badge
from identity.plugins.console.console_page import CONSOLE_PATH, Breadcrumbs, ConsolePage
from identity.plugins.console.field_labels import labelled_values
from identity.plugins.console.fields.mail_server import MAIL_SERVER_FIELDS
from identity.plugins.console.form_fields import FormField, change_field, form_fields
from identity.plugins.console.form_page import ConsoleFormPage
from identity.plugins.console.page_sections import Descriptions
from identity.plugins.console.routes import ConsoleRoute
from identity.services.commands.mail_server import ChangeMailServer
from identity.services.mails import make_test_mail
from identity.services.queued_mails import QueuedMail, QueuedMailState

_SECTION = "instance/mail-server"
_PATH = f"{CONSOLE_PATH}/{_SECTION}"
_PERMISSION = "instance.write"
_ACTION_FIELD = "action"

#: Text and kind of the badge.
_STATES = {
    QueuedMailState.WAITING: (_("Waiting"), ""),
    QueuedMailState.FAILING: (_("Failing"), "warning"),
    QueuedMailState.GIVEN_UP: (_("Given up"), "danger"),
}


class MailServerPage(ConsolePage, FormPage):
    """One form: its buttons send a test mail, or name a mail to send again or to cancel."""

    template = "console/mail_server.html"
    is_instance_page, section = True, _SECTION
    title = _("Mail server")
    fields = (_ACTION_FIELD,)
    #: The answer to a test mail that this request sent.
    result: Any = None

    def template_variables(self) -> Mapping[str, object]:
        effective = self.services.mail_server.effective()
        mailer = self.request.registry.application.mailer
        return {
            "facts": self._facts(),
            "is_set": bool(effective.server.host),
            "has_mailbox": mailer.has_mailbox and not effective.server.host,
            "address": self._own_address,
            "result": self.result,
            "columns": [_("Mail"), _("State"), _("Last answer"), _("Next attempt"), _("Since")],
            "rows": [self._row(mail) for mail in self.services.queued_mails.list_newest(principal=self.principal)],
            "said": self.translate,
        }

    def submit(self, form: Form) -> Response:
        action, _separator, mail_id = form.text(_ACTION_FIELD).partition(":")
        mails = self.services.queued_mails
        if action == "retry":
            mails.retry(mail_id, principal=self.principal)
        elif action == "cancel":
            mails.cancel(mail_id, principal=self.principal)
        else:
            return self._send_test()
        return self.redirect(self.path_with_flash(_PATH))

    def _send_test(self) -> Response:
        address, t = self._own_address, self.translator.gettext_plain
        if not address:
            raise FormRedisplay(_("Your account has no email address."))
        self.services.mail_server.record_test(principal=self.principal)
        if not self.services.mails.count_test(address):
            raise FormRedisplay(_("This address has got several test mails. Try again in an hour."), status=429)
        plain = make_test_mail(address)
        mail = type(plain)(to=address, subject=t(plain.subject), text=t(plain.text))
        # Hold no lock while the mail server answers.
        self.request.commit()
        self.result = result = self.request.registry.application.mailer.try_to_send(mail)
        result.record(self.services, mail, language=self.language, user_id=self.principal.id)
        return self.get()

    @property
    def _own_address(self) -> str:
        user = self.subject.user
        return user.profile.email if isinstance(user, HumanUser) else ""

    def _facts(self) -> Descriptions:
        effective = self.services.mail_server.effective()
        server, ui = effective.server, self.template_macros

        def described(name: str, value: object) -> Markup:
            text = self.translate(str(value)) if value not in ("", None) else self.render_placeholder(_("Not set"))
            if name not in effective.configured:
                return text
            return Markup("{} {}").format(text, ui.badge(self.translator.gettext("From the ini file")))

        facts = [
            (label, described(setting.name, value))
            for setting, label, value in labelled_values(server, MAIL_SERVER_FIELDS)
        ]
        if effective.password_file is not None:
            password: object = described("password", self.translator.gettext("From a file"))
        else:
            at = server.password_changed_at
            password = described("", None) if at is None else ui.when(at)
        return [*facts, (_("Password"), password)]

    def _row(self, mail: QueuedMail) -> tuple[object, ...]:
        ui, t = self.template_macros, self.translator.gettext
        given_up = mail.state is QueuedMailState.GIVEN_UP
        text, kind = _STATES[mail.state]
        return (
            Markup('{}<span class="table__sub">{}</span>').format(mail.subject or "—", mail.recipient),
            self.render_badge(Badge(t(text), kind)),
            mail.last_answer or "",
            "" if given_up else ui.ago(mail.next_at),
            ui.ago(mail.created_at),
            Markup("{} {}").format(
                ui.form_button(t("Send now"), _ACTION_FIELD, f"retry:{mail.id}", mail.recipient),
                ui.form_button(t("Cancel"), _ACTION_FIELD, f"cancel:{mail.id}", mail.recipient),
            ),
        )


@dataclass(frozen=True, kw_only=True)
class PortField(FormField):
    def parse_value(self, form: Form) -> object:
        """A number; other text is refused as a wrong port."""
        text = form.text(self.name).strip()
        return int(text) if text.isascii() and text.isdecimal() and len(text) < _LONGEST_PORT else 0


_LONGEST_PORT = 6
_PASSWORD_FIELD = FormField(
    "password",
    _("Password"),
    _("It is stored encrypted and never shown again."),
    required=False,
    attributes={"type": "password", "autocomplete": "new-password"},
)


def _edit_fields() -> tuple[FormField, ...]:
    fields = {field.name: field for field in form_fields(MailServer, MAIL_SERVER_FIELDS)}
    port = fields["port"]
    fields["port"] = PortField(port.name, port.label, port.hint, attributes={"inputmode": "numeric", "variant": "date"})
    sender = fields.pop("sender")
    return (*fields.values(), _PASSWORD_FIELD, sender)


class MailServerEditPage(ConsoleFormPage):
    is_instance_page, section = True, _SECTION
    title = _("Change the mail server")
    form_fields = _edit_fields()
    secret_fields = frozenset({_PASSWORD_FIELD.name})

    @property
    def breadcrumbs(self) -> Breadcrumbs:
        return [(_("Mail server"), _PATH)]

    @property
    def lead(self) -> str:
        if not self.services.mail_server.effective().configured:
            return ""
        return _("What the ini file sets cannot be changed here.")

    def visible_fields(self) -> Sequence[FormField]:
        configured = self.services.mail_server.effective().configured
        fields = [field for field in self.form_fields if field.name not in configured]
        if self.services.mail_server.get().password:
            hint = _("Leave empty to keep the current one, unless host, port, encryption or user change.")
            return change_field(fields, _PASSWORD_FIELD.name, hint=hint)
        return fields

    def initial_values(self) -> Mapping[str, FieldValue]:
        values = self.entity_values(self.services.mail_server.get())
        return {name: value for name, value in values.items() if name != _PASSWORD_FIELD.name}

    def parse_form(self, form: Form) -> dict[str, object]:
        """An empty password leaves the stored one as it is."""
        values = super().parse_form(form)
        return {name: value for name, value in values.items() if value or name != _PASSWORD_FIELD.name}

    def submit(self, form: Form) -> Response:
        command = self.build_command(ChangeMailServer, form)
        self.services.mail_server.change(command, principal=self.principal, expected_version=form.version())
        return self.redirect(self.path_with_flash(_PATH))


ROUTES = (
    ConsoleRoute(f"/{_SECTION}", MailServerPage, _PERMISSION, route_contexts.instance_context),
    ConsoleRoute(f"/{_SECTION}/edit", MailServerEditPage, _PERMISSION, route_contexts.instance_context),
)
