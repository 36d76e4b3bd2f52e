"""Fields of the branding of organizations and applications."""

from identity.domain.branding import Branding
from identity.domain.messages import gettext_lazy
from identity.plugins.console.field_labels import FieldLabel, labelled_fields

BRANDING_FIELDS = labelled_fields(
    Branding,
    {
        "display_name": FieldLabel(
            gettext_lazy("Name on pages and in mails"),
            gettext_lazy("Where people are to read another name than the one that managers see."),
        ),
        "accent": FieldLabel(
            gettext_lazy("Accent colour"),
            gettext_lazy("The colour of buttons and links, for example {example}", example="#2540ad"),
        ),
        "accent_dark": FieldLabel(
            gettext_lazy("Accent colour on dark pages"),
            gettext_lazy("Empty: the nearest to the accent colour that is read well on dark pages."),
        ),
        "support": FieldLabel(
            gettext_lazy("Support"), gettext_lazy("An email address or a page where people get help.")
        ),
        "terms_url": FieldLabel(gettext_lazy("Terms of use")),
        "privacy_url": FieldLabel(gettext_lazy("Privacy policy")),
        "login_title": FieldLabel(
            gettext_lazy("Title of the sign-in page"),
            gettext_lazy("Where a language has no words of yours, ours stand."),
        ),
        "mail_sender": FieldLabel(
            gettext_lazy("Sender of mails"), gettext_lazy("The name beside the address that mails come from.")
        ),
        "mail_intro": FieldLabel(gettext_lazy("First words of mails")),
        "mail_footer": FieldLabel(gettext_lazy("Last words of mails")),
    },
)
