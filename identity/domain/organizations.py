"""Organization: who owns users and projects."""

from datetime import datetime

from identity.domain.entity import entity, inner, made, setting, stamp
from identity.domain.names import domain_problem, name_problem
from identity.domain.search import search_text
from identity.domain.words import say


@entity
class Organization:
    """A tenant. ``primary_domain`` is unique in the instance and part of every login name.

    ``registration`` says whether people may make an account of it for themselves. ``branded`` tells that there is a
    Branding to look for.
    """

    id: str = made()
    name: str = setting(
        rule=name_problem,
        label=say("Name"),
        hint=say("Shown to people when they sign in. For example {example}", example="Acme GmbH"),
    )
    primary_domain: str = setting(rule=domain_problem, label=say("Primary domain"))
    created_at: datetime = stamp()
    changed_at: datetime = stamp()
    registration: bool = setting(
        default=False,
        label=say("People can register"),
        hint=say(
            "Whoever signs in to an application of this organization can create an account for themselves. It has no"
            " rights until somebody gives them."
        ),
        words={
            True: say("People can create an account for themselves"),
            False: say("Only managers create accounts"),
        },
    )
    branded: bool = inner(default=False)
    active: bool = made(default=True)
    version: int = stamp(default=1)

    @property
    def search_text(self) -> str:
        """Where searches look for it."""
        return search_text(self.name, self.primary_domain)
