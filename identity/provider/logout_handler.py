"""LogoutHandler: logout at upstream providers when a session ends."""

from abc import ABC, abstractmethod
from typing import ClassVar

from identity.domain.sessions import SignedInAccount
from identity.services.container import Services


class LogoutHandler(ABC):
    """Called before a session ends, for any reason. The session ends even if the logout elsewhere fails. The remote
    logout returns to ``identity.pages.sign_out.finish_logout``."""

    name: ClassVar[str]

    @abstractmethod
    def handles(self, account: SignedInAccount, services: Services) -> bool:
        """True if the account is to be signed out elsewhere, too. Must not write."""

    @abstractmethod
    def begin_logout(self, account: SignedInAccount, request_id: str, services: Services) -> str:
        """The path on the login host that starts the logout. ``request_id`` is the pending request to resume
        afterwards, in the same browser."""
