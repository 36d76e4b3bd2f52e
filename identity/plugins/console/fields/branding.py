"""Fields of the branding of organizations and applications."""

from identity.domain.branding import Branding
from identity.domain.messages import gettext_lazy as _
from identity.plugins.console.field_labels import FieldLabel, labelled_fields

BRANDING_FIELDS = labelled_fields(
    Branding,
    {
        "display_name": FieldLabel(
            _("Name on pages and in mails"), _("If people should see a different name than managers do.")
        ),
        "accent": FieldLabel(
            _("Accent colour"), _("The colour of buttons and links, for example {example}", example="#2540ad")
        ),
        "accent_dark": FieldLabel(
            _("Accent colour on dark pages"),
            _("If empty: the closest colour to the accent colour that is readable on dark pages."),
        ),
        "support": FieldLabel(_("Support"), _("An email address or a page where people get help.")),
        "terms_url": FieldLabel(_("Terms of use")),
        "privacy_url": FieldLabel(_("Privacy policy")),
        "login_title": FieldLabel(
            _("Title of the sign-in page"), _("Languages without your own text use the default.")
        ),
        "mail_sender": FieldLabel(_("Sender of mails"), _("The name beside the address that mails come from.")),
        "mail_intro": FieldLabel(_("Introduction of mails")),
        "mail_footer": FieldLabel(_("Closing of mails")),
    },
)
