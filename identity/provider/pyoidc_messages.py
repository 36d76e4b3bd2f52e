"""pyoidc's message classes, adapted to this service."""

from dataclasses import dataclass
from functools import lru_cache
from typing import Any, ClassVar, NoReturn

from oic.extension.message import TokenIntrospectionResponse as _TokenIntrospectionResponse
from oic.oauth2.message import (
    SINGLE_OPTIONAL_STRING,
    ErrorResponse,
    list_serializer,
    sp_sep_list_serializer,
)
from oic.oic.message import AccessTokenResponse as _AccessTokenResponse
from oic.oic.message import AuthorizationRequest as _AuthorizationRequest
from oic.oic.message import AuthorizationResponse as _AuthorizationResponse
from oic.oic.message import IdToken as _IdToken
from oic.oic.message import OpenIDSchema as _OpenIDSchema

from identity.crypto.jwt import sign
from identity.crypto.signature_keys import ExternalKey, PrivateKey

__all__ = ["ErrorResponse"]


_PLAIN = frozenset({str, int, bool})
_TEXTS = {str}
_PLAIN_OR_LIST = _PLAIN | {list}


class ForbiddenSignature(Exception):
    """pyoidc requested a signature other than with our key and its algorithm."""


class _UntaggedMessage:
    """A message without language tags whose values mostly have their final types already. pyoidc parses every name
    twice and looks for nested messages in every value. Here it handles only members that are not plain."""

    c_param: ClassVar[dict[str, Any]]
    #: Types of members that are kept as they are; None where pyoidc converts them. Space-delimited strings stay
    #: strings.
    _plain_types: ClassVar[dict[str, type | None]]
    #: Serializers of lists.
    _written: ClassVar[dict[str, Any]]
    _dict: dict[str, Any]

    def __init_subclass__(cls) -> None:
        cls._plain_types = {name: _unchanged_type(item) for name, item in cls.c_param.items()}
        cls._written = {name: item.serializer for name, item in cls.c_param.items() if isinstance(item.type, list)}

    @staticmethod
    def _extract_cparam(key: str, definitions: dict[str, Any]) -> Any:
        return definitions.get(key)

    def from_dict(self, dictionary: dict[str, Any], **more: Any) -> Any:
        """Same contract as pyoidc's. Raises its errors."""
        values = dictionary.values()
        kind: Any = type(self)
        converted = _not_kept(kind, tuple(dictionary), tuple(map(type, values)))
        lists = [value for value in values if type(value) is list]
        if "" in values or not all({*map(type, value)} == _TEXTS and value != [""] for value in lists):
            converted = frozenset(dictionary)
        if not converted:
            self._dict.update(dictionary)
        for name in dictionary if converted else ():
            if name in converted:
                super().from_dict({name: dictionary[name]}, **more)  # type: ignore[misc]
            else:
                self._dict[name] = dictionary[name]
        return self

    def to_dict(self, lev: int = 0) -> dict[str, Any]:
        if not _PLAIN_OR_LIST.issuperset(map(type, self._dict.values())):
            nested: dict[str, Any] = super().to_dict(lev)  # type: ignore[misc]
            return nested
        members = dict(self._dict)
        for name, serializer in self._written.items():
            if type(members.get(name)) is list:
                members[name] = serializer(members[name], "dict", lev)
        return members


@lru_cache(maxsize=500)
def _not_kept(message: Any, names: tuple[str, ...], kinds: tuple[type, ...]) -> frozenset[str]:
    """The members of these names, with values of these types, that pyoidc would convert."""
    plain_types = message._plain_types
    return frozenset(
        name
        for name, kind in zip(names, kinds, strict=True)
        if plain_types.get(name, kind) is not kind or kind not in _PLAIN_OR_LIST
    )


def _unchanged_type(definition: Any) -> type | None:
    if definition.serializer is list_serializer:
        return list
    if definition.serializer is sp_sep_list_serializer:
        return str
    return next((kind for kind in _PLAIN if kind is definition.type), None)


class AuthorizationRequestMessage(_AuthorizationRequest):  # type: ignore[misc]
    """An authorization request (OpenID Connect Core §3.1.2.1) with prompt=create and PKCE. It only converts strings to
    lists and numbers. ``authorization_request`` checks every rule, because it knows the error code for each; pyoidc's
    ``verify`` would read request objects and hints without checking signatures."""

    c_param: ClassVar[dict[str, Any]] = {
        **_AuthorizationRequest.c_param,
        "code_challenge": SINGLE_OPTIONAL_STRING,
        "code_challenge_method": SINGLE_OPTIONAL_STRING,
        # Kept as a string, so that our own check reports a value that is not a number.
        "max_age": SINGLE_OPTIONAL_STRING,
        "claims": SINGLE_OPTIONAL_STRING,
    }

    def verify(self, **_: object) -> NoReturn:
        raise TypeError("authorization requests are checked by identity.provider.authorization_request")


class AuthorizationResponse(_UntaggedMessage, _AuthorizationResponse):  # type: ignore[misc]
    """Response of the authorization endpoint, including errors (RFC 6749 §4.1.2, §4.2.2)."""


class AccessTokenResponse(_UntaggedMessage, _AccessTokenResponse):  # type: ignore[misc]
    """Response of the token endpoint (RFC 6749 §5.1)."""


class TokenIntrospectionResponse(_UntaggedMessage, _TokenIntrospectionResponse):  # type: ignore[misc]
    """Response of the introspection endpoint (RFC 7662 §2.2)."""


class OpenIDSchema(_UntaggedMessage, _OpenIDSchema):  # type: ignore[misc]
    """Response of the userinfo endpoint (OpenID Connect Core §5.3.2)."""


@dataclass(frozen=True, slots=True)
class IdTokenSigningKey:
    key_id: str
    private_key: PrivateKey | ExternalKey


class IdToken(_UntaggedMessage, _IdToken):  # type: ignore[misc]
    """An ID token signed by our crypto layer, never by pyjwkest."""

    def to_jwt(self, key: object = None, algorithm: str = "", **_: object) -> str:
        """The signed token. ``key`` is an IdTokenSigningKey. Raises ForbiddenSignature for any other key and for any
        algorithm but the key's."""
        if not isinstance(key, IdTokenSigningKey) or algorithm != key.private_key.algorithm:
            raise ForbiddenSignature("an ID token is signed with a key of the service and its algorithm")
        claims = self.to_dict()
        # pyoidc writes an audience of one as a list; every client understands a string (RFC 7519 §4.1.3).
        if isinstance(claims["aud"], list) and len(claims["aud"]) == 1:
            claims["aud"] = claims["aud"][0]
        return sign(claims, key.private_key, key_id=key.key_id)
