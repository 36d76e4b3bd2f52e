"""Fields of people: the user name, and the profile that managers may change."""

from identity.domain.messages import gettext_lazy
from identity.domain.users import HumanUser, Profile
from identity.plugins.console.field_labels import FieldLabel, labelled_fields

PROFILE_FIELDS = labelled_fields(
    Profile,
    {
        "given_name": FieldLabel(gettext_lazy("Given name"), required_message=gettext_lazy("Enter a given name.")),
        "family_name": FieldLabel(gettext_lazy("Family name"), required_message=gettext_lazy("Enter a family name.")),
        "display_name": FieldLabel(
            gettext_lazy("Display name"), gettext_lazy("Shown instead of given and family name.")
        ),
        "nickname": FieldLabel(gettext_lazy("Nickname")),
        "email": FieldLabel(
            gettext_lazy("Email"), gettext_lazy("A new address is unconfirmed until the person confirms it.")
        ),
        "phone": FieldLabel(gettext_lazy("Phone")),
        "locale": FieldLabel(gettext_lazy("Language"), gettext_lazy("For example {example}", example="de")),
        "zoneinfo": FieldLabel(
            gettext_lazy("Time zone"), gettext_lazy("For example {example}", example="Europe/Berlin")
        ),
    },
    hidden=("middle_name", "profile", "picture", "website", "gender", "birthdate", "address"),
)

HUMAN_USER_FIELDS = labelled_fields(
    HumanUser,
    {
        "user_name": FieldLabel(gettext_lazy("User name"), gettext_lazy("The first part of the login name.")),
    },
)
