"""Fields of the branding of organizations and applications."""

from identity.domain.branding import Branding
from identity.domain.messages import gettext_lazy
from identity.plugins.console.field_labels import FieldLabel, labelled_fields

BRANDING_FIELDS = labelled_fields(
    Branding,
    {
        "display_name": FieldLabel(
            gettext_lazy("Name on pages and in mails"),
            gettext_lazy("If people should see a different name than managers do."),
        ),
        "accent": FieldLabel(
            gettext_lazy("Accent colour"),
            gettext_lazy("The colour of buttons and links, for example {example}", example="#2540ad"),
        ),
        "accent_dark": FieldLabel(
            gettext_lazy("Accent colour on dark pages"),
            gettext_lazy("If empty: the closest colour to the accent colour that is readable on dark pages."),
        ),
        "support": FieldLabel(
            gettext_lazy("Support"), gettext_lazy("An email address or a page where people get help.")
        ),
        "terms_url": FieldLabel(gettext_lazy("Terms of use")),
        "privacy_url": FieldLabel(gettext_lazy("Privacy policy")),
        "login_title": FieldLabel(
            gettext_lazy("Title of the sign-in page"),
            gettext_lazy("Languages without your own text use the default."),
        ),
        "mail_sender": FieldLabel(
            gettext_lazy("Sender of mails"), gettext_lazy("The name beside the address that mails come from.")
        ),
        "mail_intro": FieldLabel(gettext_lazy("Introduction of mails")),
        "mail_footer": FieldLabel(gettext_lazy("Closing of mails")),
    },
)
