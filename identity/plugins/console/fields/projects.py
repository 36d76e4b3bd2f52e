"""Fields of projects."""

from identity.domain.messages import gettext_lazy as _
from identity.domain.projects import Project
from identity.plugins.console.field_labels import FieldLabel, labelled_fields

PROJECT_FIELDS = labelled_fields(
    Project,
    {
        "name": FieldLabel(_("Name"), _("Shown to people who sign in to its applications, and in lists.")),
        "assert_roles": FieldLabel(
            _("Role assertion"),
            _(
                "Applications always receive the roles of users in user info and introspection, even if they do not ask"
                " for them."
            ),
            value_labels={
                True: _("On: applications always receive the roles of users."),
                False: _("Off: applications receive roles only if they request them."),
            },
        ),
        "resource_uris": FieldLabel(
            _("Resource URIs"),
            _("Addresses of the project's APIs, one per line. Clients name them to get tokens for these APIs alone."),
        ),
        "open_to_dynamic_clients": FieldLabel(
            _("Open to dynamic clients"),
            _(
                "Applications that registered themselves or are known by a URL can get tokens for the project's APIs,"
                " with the consent of each person."
            ),
            value_labels={
                True: _("On: applications that no manager created can get tokens for the project's APIs."),
                False: _("Off: only applications that managers created get tokens for the project's APIs."),
            },
        ),
        "check_roles": FieldLabel(
            _("Role check"),
            _("Users without a role in the project cannot sign in to its applications."),
            value_labels={
                True: _("On: users without a role in the project cannot sign in to its applications."),
                False: _("Off: users need no role to sign in."),
            },
        ),
    },
)
