"""Fields of project roles."""

from identity.domain.messages import gettext_lazy as _
from identity.domain.projects import ProjectRole
from identity.plugins.console.field_labels import FieldLabel, labelled_fields

PROJECT_ROLE_FIELDS = labelled_fields(
    ProjectRole,
    {
        "key": FieldLabel(
            _("Role key"),
            _(
                "What applications receive, without spaces. It cannot be changed later. For example {example}",
                example="editor",
            ),
            required_message=_("Enter a key."),
        ),
        "display_name": FieldLabel(
            _("Display name"), _("Shown to those who grant the role."), required_message=_("Enter a display name.")
        ),
        "group": FieldLabel(_("Group"), _("Groups related roles, for example those of one application.")),
    },
)
