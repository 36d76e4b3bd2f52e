"""The claims parameter: single claims that a client asks for (OpenID Connect Core §5.5)."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from identity.provider.context import Context
from identity.provider.errors import InvalidRequest

_NO_OBJECT = "parameter claims does not have the form of OpenID Connect Core 5.5"


@dataclass(frozen=True, slots=True)
class ClaimsRequest:
    """Which claims are asked for, by where they are to be told, of those that some scope opens; others are ignored.

    ``subject`` is the one person whom the client will have, ``acr_values`` the authentication context classes of which
    one is essential to it; None for any.
    """

    userinfo: tuple[str, ...] = ()
    id_token: tuple[str, ...] = ()
    subject: str | None = None
    acr_values: tuple[str, ...] | None = None


def parse_claims_request(text: str, context: Context) -> ClaimsRequest:
    """The request. Raises InvalidRequest for what does not have the form of one."""
    try:
        members = _object(json.loads(text))
    except (ValueError, RecursionError):
        raise InvalidRequest(_NO_OBJECT) from None
    userinfo, id_token = (_object(members.get(name)) for name in ("userinfo", "id_token"))
    subjects = {_text(item["sub"].get("value")) for item in (userinfo, id_token) if _has(item, "sub", "value")}
    if len(subjects) > 1:
        raise InvalidRequest("parameter claims asks for two subjects")
    known = context.protocol.scopes.claims
    return ClaimsRequest(
        tuple(name for name in userinfo if name in known),
        tuple(name for name in id_token if name in known),
        next(iter(subjects), None),
        _essential_acr(id_token.get("acr")),
    )


def _essential_acr(asked: Mapping[str, Any] | None) -> tuple[str, ...] | None:
    """The values of which one has to be reached (OpenID Connect Core §5.5.1.1); None if there is no such condition."""
    if not asked or asked.get("essential") is not True or not asked.keys() & {"value", "values"}:
        return None
    values = asked["values"] if "values" in asked else [asked["value"]]
    if not isinstance(values, list):
        raise InvalidRequest(_NO_OBJECT)
    return tuple(map(_text, values))


def _object(value: object) -> dict[str, Any]:
    """The members of what may be null. Each is null or an object in its turn, one level down."""
    if value is None:
        return {}
    if not isinstance(value, dict) or not all(item is None or isinstance(item, dict) for item in value.values()):
        raise InvalidRequest(_NO_OBJECT)
    return value


def _has(members: Mapping[str, Any], claim: str, name: str) -> bool:
    return name in (members.get(claim) or {})


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise InvalidRequest(_NO_OBJECT)
    return value
