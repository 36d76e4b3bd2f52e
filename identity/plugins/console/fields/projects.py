"""Fields of projects."""

from identity.domain.messages import gettext_lazy
from identity.domain.projects import Project
from identity.plugins.console.field_labels import FieldLabel, labelled_fields

PROJECT_FIELDS = labelled_fields(
    Project,
    {
        "name": FieldLabel(
            gettext_lazy("Name"), gettext_lazy("Shown to people who sign in to its applications, and in lists.")
        ),
        "assert_roles": FieldLabel(
            gettext_lazy("Role assertion"),
            gettext_lazy(
                "Applications always receive the roles of users in user info and introspection, even if they do not ask"
                " for them."
            ),
            value_labels={
                True: gettext_lazy("On: applications always receive the roles of users."),
                False: gettext_lazy("Off: applications receive roles only if they request them."),
            },
        ),
        "check_roles": FieldLabel(
            gettext_lazy("Role check"),
            gettext_lazy("Users without a role in the project cannot sign in to its applications."),
            value_labels={
                True: gettext_lazy("On: users without a role in the project cannot sign in to its applications."),
                False: gettext_lazy("Off: users need no role to sign in."),
            },
        ),
    },
)
