"""The claims parameter: requests for single claims (OpenID Connect Core §5.5)."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from identity.provider.context import Context
from identity.provider.errors import InvalidRequest

_NO_OBJECT = "parameter claims does not have the form of OpenID Connect Core 5.5"


@dataclass(frozen=True, slots=True)
class ClaimsRequest:
    """The requested claims, by where they are returned. Claims that no scope opens are ignored. ``subject`` is the
    required user; ``acr_values`` are the authentication context classes of which one is essential, None if any will
    do."""

    userinfo: tuple[str, ...] = ()
    id_token: tuple[str, ...] = ()
    subject: str | None = None
    acr_values: tuple[str, ...] | None = None


def parse_claims_request(text: str, context: Context) -> ClaimsRequest:
    """Raises InvalidRequest for a malformed value."""
    try:
        members = _object(json.loads(text))
    except (ValueError, RecursionError):
        raise InvalidRequest(_NO_OBJECT) from None
    userinfo, id_token = (_object(members.get(name)) for name in ("userinfo", "id_token"))
    subject_requests = [item.get("sub") or {} for item in (userinfo, id_token)]
    subjects = {_text(item["value"]) for item in subject_requests if "value" in item}
    if len(subjects) > 1:
        raise InvalidRequest("parameter claims asks for two subjects")
    known = context.protocol.scopes.claims
    return ClaimsRequest(
        tuple(name for name in userinfo if name in known),
        tuple(name for name in id_token if name in known),
        next(iter(subjects), None),
        _essential_acr(id_token.get("acr")),
    )


def _essential_acr(acr_request: Mapping[str, Any] | None) -> tuple[str, ...] | None:
    """The values of which one is essential (OpenID Connect Core §5.5.1.1); None if there is no such condition."""
    if not acr_request or acr_request.get("essential") is not True or not acr_request.keys() & {"value", "values"}:
        return None
    values = acr_request["values"] if "values" in acr_request else [acr_request["value"]]
    if not isinstance(values, list):
        raise InvalidRequest(_NO_OBJECT)
    return tuple(map(_text, values))


def _object(value: object) -> dict[str, Any]:
    """The members of a nullable object. Each is null or an object itself."""
    if value is None:
        return {}
    if not isinstance(value, dict) or not all(item is None or isinstance(item, dict) for item in value.values()):
        raise InvalidRequest(_NO_OBJECT)
    return value


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise InvalidRequest(_NO_OBJECT)
    return value
