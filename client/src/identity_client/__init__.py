"""Client of the identity service: sign-in, token checks and service users."""

from identity_client.client import AsyncIdentityClient, IdentityClient
from identity_client.errors import (
    IdentityError,
    InvalidToken,
    MissingRole,
    MissingToken,
    SignInFailed,
    TokenRefused,
    Unavailable,
)
from identity_client.service_user import ServiceUser
from identity_client.sign_in import SignedIn, User
from identity_client.tokens import AccessToken
from identity_client.version import __version__

__all__ = [
    "AccessToken",
    "AsyncIdentityClient",
    "IdentityClient",
    "IdentityError",
    "InvalidToken",
    "MissingRole",
    "MissingToken",
    "ServiceUser",
    "SignInFailed",
    "SignedIn",
    "TokenRefused",
    "Unavailable",
    "User",
    "__version__",
]
