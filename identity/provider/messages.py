"""Our messages: pyoidc's message classes, made to say what this service means."""

from dataclasses import dataclass
from typing import Any, ClassVar, NoReturn

from oic.extension.message import TokenIntrospectionResponse as _TokenIntrospectionResponse
from oic.oauth2.message import SINGLE_OPTIONAL_STRING, ErrorResponse, MessageTuple
from oic.oic.message import AccessTokenResponse as _AccessTokenResponse
from oic.oic.message import AuthorizationRequest as _AuthorizationRequest
from oic.oic.message import AuthorizationResponse as _AuthorizationResponse
from oic.oic.message import IdToken as _IdToken
from oic.oic.message import OIDCMessageFactory
from oic.oic.message import OpenIDSchema as _OpenIDSchema
from oic.oic.message import ProviderConfigurationResponse as _ProviderConfigurationResponse

from identity.crypto.jwt import sign
from identity.crypto.keys import PrivateKey

__all__ = ["ErrorResponse"]


_PLAIN = frozenset({str, int, bool})


class SignatureRefused(Exception):
    """pyoidc asked for a signature in another way than the one we make."""


class _Plain:
    """A message whose members have no language tags, and whose values mostly are what they should be already.

    pyoidc takes every name apart twice, and looks for nested messages in every value.
    """

    c_param: ClassVar[dict[str, Any]]
    _dict: dict[str, Any]

    @staticmethod
    def _extract_cparam(key: str, definitions: dict[str, Any]) -> Any:
        return definitions.get(key)

    def from_dict(self, dictionary: dict[str, Any], **more: Any) -> Any:
        """As pyoidc's, which is asked about every value that is not of the very type that it should have."""
        for name, value in dictionary.items():
            definition, kind = self.c_param.get(name), type(value)
            if value != "" and (kind in _PLAIN if definition is None else kind is definition.type):
                self._dict[name] = value
            else:
                super().from_dict({name: value}, **more)  # type: ignore[misc]
        return self

    def to_dict(self, lev: int = 0) -> dict[str, Any]:
        """As pyoidc's, which is asked if some value is neither plain nor a list."""
        members: dict[str, Any] = {}
        for name, value in self._dict.items():
            if type(value) in _PLAIN:
                members[name] = value
            elif type(value) is list:
                definition = self.c_param.get(name)
                members[name] = value if definition is None else definition.serializer(value, "dict", lev)
            else:
                nested: dict[str, Any] = super().to_dict(lev)  # type: ignore[misc]
                return nested
        return members


class AuthorizationRequestMessage(_AuthorizationRequest):  # type: ignore[misc]
    """An authorization request (OpenID Connect Core §3.1.2.1) with prompt=create and PKCE.

    It only turns texts into lists and numbers. Every rule is checked by ``authorization_request``, which knows the
    error code for each; pyoidc's ``verify`` would read request objects and hints without checking signatures.
    """

    c_param: ClassVar[dict[str, Any]] = {
        **_AuthorizationRequest.c_param,
        "code_challenge": SINGLE_OPTIONAL_STRING,
        "code_challenge_method": SINGLE_OPTIONAL_STRING,
        # Taken as it is: whether it is a number is told in words of ours.
        "max_age": SINGLE_OPTIONAL_STRING,
        "claims": SINGLE_OPTIONAL_STRING,
    }

    def verify(self, **_: object) -> NoReturn:
        """Refuse."""
        raise TypeError("authorization requests are checked by identity.provider.authorization_request")


class AuthorizationResponse(_Plain, _AuthorizationResponse):  # type: ignore[misc]
    """The answer of the authorization endpoint, errors included (RFC 6749 §4.1.2, §4.2.2)."""


class AccessTokenResponse(_Plain, _AccessTokenResponse):  # type: ignore[misc]
    """The answer of the token endpoint (RFC 6749 §5.1)."""


class TokenIntrospectionResponse(_Plain, _TokenIntrospectionResponse):  # type: ignore[misc]
    """The answer of the introspection endpoint (RFC 7662 §2.2)."""


class OpenIDSchema(_Plain, _OpenIDSchema):  # type: ignore[misc]
    """The answer of the userinfo endpoint (OpenID Connect Core §5.3.2)."""


class ProviderConfigurationResponse(_ProviderConfigurationResponse):  # type: ignore[misc]
    """The discovery document (OpenID Connect Discovery §3).

    pyoidc's defaults are dropped: what the document says is derived, never assumed.
    """

    c_default: ClassVar[dict[str, Any]] = {}


class MessageFactory(OIDCMessageFactory):  # type: ignore[misc]
    """pyoidc's factory with our messages in it."""

    configuration_endpoint = MessageTuple(OpenIDSchema, ProviderConfigurationResponse)


@dataclass(frozen=True, slots=True)
class IdTokenSignature:
    """How an ID token is to be signed."""

    key_id: str
    private_key: PrivateKey


class IdToken(_Plain, _IdToken):  # type: ignore[misc]
    """An ID token whose signature comes from our crypto layer, never from pyjwkest."""

    def to_jwt(self, key: object = None, algorithm: str = "", **_: object) -> str:
        """The signed token. ``key`` is an IdTokenSignature.

        Raises SignatureRefused for every other key and for every algorithm but RS256.
        """
        if algorithm != "RS256" or not isinstance(key, IdTokenSignature):
            raise SignatureRefused("an ID token is signed with RS256 and a key of the service")
        claims = self.to_dict()
        # pyoidc writes an audience of one as a list; a string is what every client reads (RFC 7519 §4.1.3).
        if isinstance(claims["aud"], list) and len(claims["aud"]) == 1:
            claims["aud"] = claims["aud"][0]
        return sign(claims, key.private_key, algorithm=algorithm, key_id=key.key_id)
