"""Fields of project roles."""

from identity.domain.messages import gettext_lazy
from identity.domain.projects import ProjectRole
from identity.plugins.console.field_labels import FieldLabel, labelled_fields

PROJECT_ROLE_FIELDS = labelled_fields(
    ProjectRole,
    {
        "key": FieldLabel(
            gettext_lazy("Role key"),
            gettext_lazy(
                "What applications receive, without spaces. It cannot be changed later. For example {example}",
                example="editor",
            ),
            required_message=gettext_lazy("Enter a key."),
        ),
        "display_name": FieldLabel(
            gettext_lazy("Display name"),
            gettext_lazy("Shown to those who grant the role."),
            required_message=gettext_lazy("Enter a display name."),
        ),
        "group": FieldLabel(
            gettext_lazy("Group"),
            gettext_lazy("Groups related roles, for example those of one application."),
        ),
    },
)
