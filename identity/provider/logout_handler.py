"""LogoutHandler: logout at other providers when a session ends."""

from abc import ABC, abstractmethod
from typing import ClassVar

from identity.domain.sessions import SignedInAccount
from identity.services.container import Services


class LogoutHandler(ABC):
    """Asked before a session ends, whoever asked for it. It ends whatever comes of the way.

    What the way leads to comes back with ``identity.provider.endpoints.end_session.finish_logout``.
    """

    name: ClassVar[str]

    @abstractmethod
    def handles(self, account: SignedInAccount, services: Services) -> bool:
        """True if they sign out elsewhere, too. Only looks."""

    @abstractmethod
    def begin_logout(self, account: SignedInAccount, request_id: str, services: Services) -> str:
        """The path on the login host that leads there. ``request_id`` is what waits for them to come back, as requests
        for signing in do: in this browser alone."""
