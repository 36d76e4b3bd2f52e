"""Organization: who owns users and projects."""

from datetime import datetime

from identity.domain.entity import entity, made, setting, stamp
from identity.domain.names import domain_problem, name_problem
from identity.domain.search import search_text


@entity
class Organization:
    """A tenant. ``primary_domain`` is unique in the instance and part of every login name.

    ``registration`` says whether people may make an account of it for themselves.
    """

    id: str = made()
    name: str = setting(rule=name_problem)
    primary_domain: str = setting(rule=domain_problem)
    created_at: datetime = stamp()
    changed_at: datetime = stamp()
    registration: bool = setting(default=False)
    active: bool = made(default=True)
    version: int = stamp(default=1)

    @property
    def search_text(self) -> str:
        """Where searches look for it."""
        return search_text(self.name, self.primary_domain)
