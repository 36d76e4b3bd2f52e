"""Fields of people: the user name, and the profile that managers may change."""

from identity.domain.messages import gettext_lazy as _
from identity.domain.users import HumanUser, Profile
from identity.plugins.console.field_labels import FieldLabel, labelled_fields

PROFILE_FIELDS = labelled_fields(
    Profile,
    {
        "given_name": FieldLabel(_("Given name"), required_message=_("Enter a given name.")),
        "family_name": FieldLabel(_("Family name"), required_message=_("Enter a family name.")),
        "display_name": FieldLabel(_("Display name"), _("Shown instead of given and family name.")),
        "nickname": FieldLabel(_("Nickname")),
        "email": FieldLabel(_("Email"), _("A new address is unconfirmed until the person confirms it.")),
        "phone": FieldLabel(_("Phone")),
        "locale": FieldLabel(_("Language"), _("For example {example}", example="de")),
        "zoneinfo": FieldLabel(_("Time zone"), _("For example {example}", example="Europe/Berlin")),
    },
    hidden=("middle_name", "profile", "picture", "website", "gender", "birthdate", "address"),
)

HUMAN_USER_FIELDS = labelled_fields(
    HumanUser, {"user_name": FieldLabel(_("User name"), _("The first part of the login name."))}
)
