"""OneTime: what an authorization uses up when its tokens are recorded."""

from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager

from identity.domain.tokens import AccessToken, RefreshToken
from identity.provider.context import Context
from identity.provider.errors import InvalidGrant
from identity.services.tokens import NotRedeemable, ReplayDetected


class SingleUseCredential(ABC):
    """A code or refresh token that was judged good and is still to be used up.

    That comes last, after every signature, in the transaction that records what it brings: nobody waits for a lock
    while keys sign, and of racing requests exactly one gets its tokens recorded.
    """

    @abstractmethod
    def consume(self, access: AccessToken | None, refresh: RefreshToken | None, context: Context) -> None:
        """Use it up and keep what it brings, as the last change of the transaction. Raises InvalidGrant."""


@contextmanager
def translate_token_errors() -> Iterator[None]:
    """Turn what the services say of codes and refresh tokens into the protocol's words."""
    try:
        yield
    except ReplayDetected:
        raise InvalidGrant("the grant was used before", keep_changes=True) from None
    except NotRedeemable as problem:
        raise InvalidGrant("the grant is not valid any more", reason=str(problem)) from None
