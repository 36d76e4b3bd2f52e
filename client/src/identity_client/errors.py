"""What can go wrong, each with the status and the headers of an HTTP response to it."""

from collections.abc import Mapping
from http import HTTPStatus
from typing import ClassVar


class IdentityError(Exception):
    """The base of all errors. ``str`` names the reason for a log; it never contains a token or a secret."""

    status: ClassVar[int] = 500

    @property
    def headers(self) -> Mapping[str, str]:
        return {}

    @property
    def detail(self) -> str:
        """What the response may say."""
        return HTTPStatus(self.status).phrase


class Unavailable(IdentityError):
    """The service cannot be reached, or its response is not what the standard requires. Try again later."""

    status = 503

    @property
    def headers(self) -> Mapping[str, str]:
        return {"Retry-After": "5"}


class MissingToken(IdentityError):
    """The request has no bearer token."""

    status = 401

    @property
    def headers(self) -> Mapping[str, str]:
        return {"WWW-Authenticate": "Bearer"}


class InvalidToken(IdentityError):
    """The token is malformed, expired, revoked, or meant for others."""

    status = 401

    @property
    def headers(self) -> Mapping[str, str]:
        return {"WWW-Authenticate": 'Bearer error="invalid_token"'}


class MissingRole(IdentityError):
    """The token is valid, but its user has none of the roles."""

    status = 403

    @property
    def headers(self) -> Mapping[str, str]:
        return {"WWW-Authenticate": 'Bearer error="insufficient_scope"'}


class SignInFailed(IdentityError):
    """The callback does not belong to a sign-in of this browser, or the service refused it.

    ``error`` is the service's error code, such as ``access_denied``, or ``invalid_request``.
    """

    status = 400

    def __init__(self, reason: str, error: str = "invalid_request") -> None:
        super().__init__(reason)
        self.error = error

    @property
    def detail(self) -> str:
        return f"Sign-in failed: {self.error}"


class TokenRefused(IdentityError):
    """The service issued no token. ``error`` is its error code, such as ``invalid_grant``."""

    def __init__(self, reason: str, error: str) -> None:
        super().__init__(reason)
        self.error = error
