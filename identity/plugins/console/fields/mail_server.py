"""Fields of the mail server."""

from identity.domain.mail_server import MailServer, SmtpSecurity
from identity.domain.messages import gettext_lazy as _
from identity.plugins.console.field_labels import FieldLabel, labelled_fields

MAIL_SERVER_FIELDS = labelled_fields(
    MailServer,
    {
        "host": FieldLabel(
            _("Host"), _("For example {example}. Leave empty to send no mails.", example="smtp.example.com")
        ),
        "port": FieldLabel(_("Port"), _("587 for STARTTLS, 465 for TLS.")),
        "security": FieldLabel(
            _("Encryption"),
            _("The server's certificate must prove its host name."),
            value_labels={
                SmtpSecurity.STARTTLS: _("STARTTLS"),
                SmtpSecurity.TLS: _("TLS from the start"),
                SmtpSecurity.NONE: _("None"),
            },
        ),
        "user": FieldLabel(_("User"), _("Leave empty for no authentication.")),
        "sender": FieldLabel(
            _("Sender"), _("What mails come from, for example {example}.", example="Example <no-reply@example.com>")
        ),
    },
)
