"""Names of the service's mails, and fields of their texts."""

from collections.abc import Mapping

from identity.domain.mail_texts import MAX_LINES, MAX_SUBJECT_LENGTH, MAX_TEXT_LENGTH, MailKind
from identity.domain.messages import gettext_lazy as _
from identity.plugins.console.form_fields import FormField, TextArea

MAIL_LABELS: Mapping[MailKind, str] = {
    MailKind.INVITATION: _("Invitation to a new account"),
    MailKind.NEW_CREDENTIAL: _("New password by a manager"),
    MailKind.PASSWORD_RESET: _("Forgotten password"),
    MailKind.PASSWORD_RESET_ACCOUNTS: _("Forgotten password, with all accounts of the address"),
    MailKind.REGISTRATION_LINK: _("Registration: link to finish it"),
    MailKind.REGISTRATION_EXISTING_ACCOUNT: _("Registration: an account exists already"),
    MailKind.REGISTERED: _("Registration: welcome"),
    MailKind.EMAIL_VERIFICATION: _("Verification of an email address"),
    MailKind.EMAIL_CODE: _("Code to sign in"),
    MailKind.NEW_BROWSER: _("Notice: sign-in from a new browser"),
    MailKind.EMAIL_CHANGED: _("Notice: email address changed"),
    MailKind.PASSWORD_CHANGED: _("Notice: password changed"),
    MailKind.PASSWORD_SET: _("Notice: one-time password set"),
    MailKind.FACTOR_ADDED: _("Notice: sign-in method added"),
    MailKind.FACTOR_REMOVED: _("Notice: sign-in method removed"),
    MailKind.FACTOR_RESET: _("Notice: sign-in methods reset"),
    MailKind.FACTOR_USED: _("Notice: backup sign-in method used"),
    MailKind.FACTOR_SUSPECTED: _("Notice: passkey refused"),
    MailKind.REPORTED: _("Notice: all sessions ended"),
    MailKind.AGENT_ADDED: _("Notice: agent added"),
    MailKind.IMPERSONATED: _("Notice: a manager signed in as the person"),
    MailKind.MANAGER_ROLES_ENDING: _("Notice: manager roles end soon"),
    MailKind.PROJECT_ROLES_ENDING: _("Notice: roles in a project end soon"),
    MailKind.DELETION_ASKED: _("Notice: account will be deleted"),
    MailKind.DELETION_WITHDRAWN: _("Notice: account stays"),
    MailKind.REMOVED: _("Notice: account deleted"),
}

MAIL_TEXT_FIELDS = (
    FormField(
        "subject",
        _("Subject"),
        _("Leave empty for the usual one."),
        required=False,
        attributes={"autocomplete": "off", "maxlength": MAX_SUBJECT_LENGTH},
    ),
    TextArea(
        "intro",
        _("Text before"),
        _("Greeting and introduction. What the service says, its link and its code follow below."),
        required=False,
        attributes={"rows": 6, "maxlength": MAX_TEXT_LENGTH},
    ),
    TextArea(
        "closing",
        _("Text after"),
        _("Closing words, at most {n} lines.", n=MAX_LINES),
        required=False,
        attributes={"rows": 4, "maxlength": MAX_TEXT_LENGTH},
    ),
)
