"""Security profiles: FAPI 2.0 for one application.

A profile only refuses. Settings that contradict it are refused when they are saved, and each request is judged by it
again. So neither a request nor a later change of the application, of the plugins or of the settings gets more than the
profile allows.
"""

from collections.abc import Collection, Iterator
from datetime import timedelta
from enum import StrEnum
from typing import TYPE_CHECKING

from identity.domain.messages import gettext_lazy
from identity.domain.signature_algorithms import SignatureAlgorithm

if TYPE_CHECKING:
    from identity.domain.applications import Application

#: Client authentication with a key (FAPI 2.0 Security Profile §5.3.2.1).
KEY_AUTHENTICATION_METHODS = ("private_key_jwt", "tls_client_auth", "self_signed_tls_client_auth")
#: The longest lifetime of authorization codes (§5.3.2.1).
MAX_CODE_LIFETIME = timedelta(seconds=60)
#: The algorithms of signatures, of the service and of its clients (§5.4.1).
PROFILE_ALGORITHMS = tuple(
    name for name in SignatureAlgorithm.names() if SignatureAlgorithm.from_name(name) is not SignatureAlgorithm.RS256
)


class SecurityProfile(StrEnum):
    """FAPI 2.0 Security Profile, or with it FAPI 2.0 Message Signing."""

    FAPI2 = "fapi2"
    FAPI2_MESSAGE_SIGNING = "fapi2_message_signing"


def find_profile_conflicts(
    application: "Application", authentication_methods: Collection[str]
) -> Iterator[tuple[str, str]]:
    """The fields of an application with a profile whose values contradict it, each with a sentence.
    ``authentication_methods`` are those that the service offers."""
    name = application.security_profile
    if application.authentication_method not in KEY_AUTHENTICATION_METHODS:
        yield (
            "authentication_method",
            gettext_lazy(
                "The profile {profile} needs one of {names}.",
                profile=name,
                names=", ".join(item for item in KEY_AUTHENTICATION_METHODS if item in authentication_methods),
            ),
        )
    if not application.response_types <= {"code"}:
        yield "response_types", gettext_lazy("The profile {profile} allows only {names}.", profile=name, names="code")
    algorithms = ", ".join(PROFILE_ALGORITHMS)
    if application.id_token_signed_response_alg not in PROFILE_ALGORITHMS:
        yield (
            "id_token_signed_response_alg",
            gettext_lazy(
                "The profile {profile} needs one of {names}. If none of them is offered, an operator adds one to "
                "{setting}, and a few minutes later its key is active.",
                profile=name,
                names=", ".join(item for item in SignatureAlgorithm if item in PROFILE_ALGORITHMS),
                setting="identity.signing_algorithms",
            ),
        )
    for field in _OPTIONAL_ALGORITHMS:
        if getattr(application, field) and getattr(application, field) not in PROFILE_ALGORITHMS:
            yield field, gettext_lazy("The profile {profile} allows only {names}.", profile=name, names=algorithms)
    if application.development:
        yield "development", gettext_lazy("The profile {profile} does not allow this.", profile=name)
    if application.type != "native" and any(uri.lower().startswith("http://") for uri in application.redirect_uris):
        yield (
            "redirect_uris",
            gettext_lazy("The profile {profile} allows only {names}.", profile=name, names="https://"),
        )
    if application.signs_messages and not (application.jwks or application.jwks_uri):
        yield "jwks_uri", gettext_lazy("Enter the address of the application's public keys, or the keys.")


_OPTIONAL_ALGORITHMS = (
    "userinfo_signed_response_alg",
    "authorization_signed_response_alg",
    "introspection_signed_response_alg",
    "token_endpoint_auth_signing_alg",
    "request_object_signing_alg",
)
