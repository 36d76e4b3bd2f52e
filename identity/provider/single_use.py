"""SingleUseCredential: consumed when the tokens of an authorization are stored."""

from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager

from identity.domain.tokens import AccessToken, RefreshToken
from identity.provider.context import Context
from identity.provider.errors import InvalidGrant
from identity.services.tokens import NotRedeemable, ReplayDetected


class SingleUseCredential(ABC):
    """A code or refresh token that was validated and is still to be consumed. Consuming it comes last, after every
    signature, in the transaction that stores the tokens, so that no lock is held while keys sign, and exactly one
    of several concurrent requests gets its tokens stored."""

    @abstractmethod
    def consume(self, access: AccessToken | None, refresh: RefreshToken | None, context: Context) -> None:
        """Consume it and store the tokens, as the last write of the transaction. Raises InvalidGrant."""

    @staticmethod
    @contextmanager
    def translate_errors() -> Iterator[None]:
        """Translate the services' errors about codes and refresh tokens into OAuth errors."""
        try:
            yield
        except ReplayDetected:
            raise InvalidGrant("the grant was used before", keep_changes=True) from None
        except NotRedeemable as problem:
            raise InvalidGrant("the grant is not valid any more", reason=str(problem)) from None
