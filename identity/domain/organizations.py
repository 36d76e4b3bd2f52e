"""Organizations: the tenants that own users and projects."""

from datetime import datetime

from identity.domain.entity import entity, internal, mutable, read_only, versioned
from identity.domain.messages import gettext_lazy
from identity.domain.names import display_name_error, domain_name_error
from identity.domain.search import search_text


@entity
class Organization:
    """A tenant. ``primary_domain`` is unique in the instance and part of every login name.

    ``registration`` allows users to register themselves. ``branded`` says that it has a Branding.
    """

    id: str = read_only()
    name: str = mutable(
        validator=display_name_error,
        label=gettext_lazy("Name"),
        hint=gettext_lazy("Shown to people when they sign in. For example {example}", example="Acme GmbH"),
    )
    primary_domain: str = mutable(validator=domain_name_error, label=gettext_lazy("Primary domain"))
    created_at: datetime = versioned()
    changed_at: datetime = versioned()
    registration: bool = mutable(
        default=False,
        label=gettext_lazy("People can register"),
        hint=gettext_lazy(
            "Whoever signs in to an application of this organization can create an account for themselves. It has no"
            " rights until somebody gives them."
        ),
        value_labels={
            True: gettext_lazy("People can create an account for themselves"),
            False: gettext_lazy("Only managers create accounts"),
        },
    )
    branded: bool = internal(default=False)
    active: bool = read_only(default=True)
    version: int = versioned(default=1)

    @property
    def search_text(self) -> str:
        return search_text(self.name, self.primary_domain)
