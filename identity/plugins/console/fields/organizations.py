"""Fields of organizations."""

from identity.domain.messages import gettext_lazy
from identity.domain.organizations import Organization
from identity.plugins.console.field_labels import FieldLabel, labelled_fields

ORGANIZATION_FIELDS = labelled_fields(
    Organization,
    {
        "name": FieldLabel(
            gettext_lazy("Name"),
            gettext_lazy("Shown to people when they sign in. For example {example}", example="Acme GmbH"),
        ),
        "primary_domain": FieldLabel(gettext_lazy("Primary domain")),
        "registration": FieldLabel(
            gettext_lazy("People can register"),
            gettext_lazy(
                "People who sign in to an application of this organization can create an account. It "
                "has no permissions until a manager grants them."
            ),
            value_labels={
                True: gettext_lazy("People can create an account for themselves"),
                False: gettext_lazy("Only managers create accounts"),
            },
        ),
    },
)
