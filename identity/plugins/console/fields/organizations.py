"""Fields of organizations."""

from identity.domain.messages import gettext_lazy as _
from identity.domain.organizations import Organization
from identity.plugins.console.field_labels import FieldLabel, labelled_fields

ORGANIZATION_FIELDS = labelled_fields(
    Organization,
    {
        "name": FieldLabel(
            _("Name"), _("Shown to people when they sign in. For example {example}", example="Acme GmbH")
        ),
        "primary_domain": FieldLabel(_("Primary domain")),
        "registration": FieldLabel(
            _("People can register"),
            _(
                "People who sign in to an application of this organization can create an account. It "
                "has no permissions until a manager grants them."
            ),
            value_labels={
                True: _("People can create an account for themselves"),
                False: _("Only managers create accounts"),
            },
        ),
    },
)
