"""Client metadata (RFC 7591 §2; OpenID Connect Dynamic Client Registration §2) as settings of an application.

The rules of values are those of applications that managers create. What the service does not know is ignored: the
response says what was registered.
"""

import json
from collections.abc import Mapping
from datetime import timedelta
from typing import Any
from urllib.parse import urlsplit

from identity.api.endpoints import OAuthError
from identity.api.entities import Application, ApplicationType, Project

_CODE = "authorization_code"
_LOOPBACK_HOSTS = frozenset({"localhost", "127.0.0.1", "::1"})
#: Metadata by the settings that hold them; texts, lists and booleans with the same values.
_MEMBERS: Mapping[str, str] = {
    "client_name": "name",
    "redirect_uris": "redirect_uris",
    "post_logout_redirect_uris": "post_logout_redirect_uris",
    "response_types": "response_types",
    "grant_types": "grant_types",
    "token_endpoint_auth_method": "authentication_method",
    "token_endpoint_auth_signing_alg": "token_endpoint_auth_signing_alg",
    "jwks_uri": "jwks_uri",
    "id_token_signed_response_alg": "id_token_signed_response_alg",
    "userinfo_signed_response_alg": "userinfo_signed_response_alg",
    "authorization_signed_response_alg": "authorization_signed_response_alg",
    "introspection_signed_response_alg": "introspection_signed_response_alg",
    "request_object_signing_alg": "request_object_signing_alg",
    "request_uris": "request_uris",
    "subject_type": "subject_type",
    "sector_identifier_uri": "sector_identifier_uri",
    "tls_client_auth_subject_dn": "tls_client_auth_subject_dn",
    "tls_client_auth_san_dns": "tls_client_auth_san_dns",
    "tls_client_auth_san_uri": "tls_client_auth_san_uri",
    "tls_client_auth_san_ip": "tls_client_auth_san_ip",
    "tls_client_auth_san_email": "tls_client_auth_san_email",
    "require_pushed_authorization_requests": "require_pushed_authorization_requests",
    "require_signed_request_object": "require_signed_request_object",
    "backchannel_logout_uri": "backchannel_logout_uri",
    "frontchannel_logout_uri": "frontchannel_logout_uri",
}
_METADATA_BY_SETTING = {setting: member for member, setting in _MEMBERS.items()}
_LISTS = frozenset({"redirect_uris", "post_logout_redirect_uris", "response_types", "grant_types", "request_uris"})
_BOOLEANS = frozenset({"require_pushed_authorization_requests", "require_signed_request_object"})
_URI_MEMBERS = frozenset({"redirect_uris", "post_logout_redirect_uris"})
_HOSTED = (
    *sorted(_URI_MEMBERS),
    *("backchannel_logout_uri", "frontchannel_logout_uri", "request_uris", "sector_identifier_uri"),
)
#: The members that require bound tokens, by the constraint.
_BOUND_TOKENS: Mapping[str, str] = {
    "dpop": "dpop_bound_access_tokens",
    "mutual_tls": "tls_client_certificate_bound_access_tokens",
}


class InvalidRedirectUri(OAuthError):
    """A redirect URI is not allowed (RFC 7591 §3.2.2)."""

    error = "invalid_redirect_uri"


class InvalidClientMetadata(OAuthError):
    """Some other metadata is not allowed."""

    error = "invalid_client_metadata"


class InvalidSoftwareStatement(OAuthError):
    """The software statement is malformed."""

    error = "invalid_software_statement"


class UnapprovedSoftwareStatement(OAuthError):
    """The service trusts no issuer of software statements."""

    error = "unapproved_software_statement"


def refusal_of_fields(problems: Mapping[str, str]) -> OAuthError:
    """The error for settings that the rules of applications refuse."""
    text = "; ".join(f"{_METADATA_BY_SETTING.get(name, name)}: {problem}" for name, problem in sorted(problems.items()))
    kind = InvalidRedirectUri if problems.keys() <= _URI_MEMBERS else InvalidClientMetadata
    return kind(text, reason="metadata that the rules of applications refuse")


def application_settings(
    metadata: Mapping[str, Any], project: Project, usual_grant_types: frozenset[str]
) -> dict[str, Any]:
    """All settings that metadata decide, with the defaults of RFC 7591 for what is left out. ``usual_grant_types`` are
    those of a project that names none. Raises OAuthError."""
    _refuse_software_statement(metadata)
    values: dict[str, Any] = {}
    for member, setting in _MEMBERS.items():
        value = metadata.get(member)
        kind = list if member in _LISTS else bool if member in _BOOLEANS else str
        if value is not None and not _is_of_kind(value, kind):
            raise InvalidClientMetadata(f"{member} must be a {'list of texts' if kind is list else kind.__name__}")
        values[setting] = value if value is not None else [] if kind is list else False if kind is bool else ""
    values["jwks"] = _key_set(metadata)
    values["grant_types"] = values["grant_types"] or [_CODE]
    if not values["response_types"]:
        values["response_types"] = ["code"] if _CODE in values["grant_types"] else []
    values["authentication_method"] = values["authentication_method"] or "client_secret_basic"
    values["subject_type"] = values["subject_type"] or "public"
    for setting in _MEMBERS.values():
        if setting.endswith("_signed_response_alg"):
            values[setting] = values[setting] or None
    values["required_sender_constraint"] = _required_constraint(metadata)
    values["name"] = values["name"].strip() or _default_name(values["redirect_uris"])
    values["access_token_lifetime"] = timedelta(minutes=project.registration_token_minutes)
    _check_policy(values, project, usual_grant_types)
    return values


def application_type(metadata: Mapping[str, Any]) -> ApplicationType:
    """Where the client runs. Raises InvalidClientMetadata."""
    declared = metadata.get("application_type")
    if declared not in (None, "web", "native"):
        raise InvalidClientMetadata("application_type must be web or native")
    uris = metadata.get("redirect_uris")
    sent = [uri for uri in uris if isinstance(uri, str)] if isinstance(uris, list) else []
    is_local = bool(sent) and all(_host(uri) in _LOOPBACK_HOSTS or _is_private(uri) for uri in sent)
    if declared == "native" or is_local:
        return ApplicationType.NATIVE
    is_public = metadata.get("token_endpoint_auth_method") == "none"
    return ApplicationType.BROWSER if is_public else ApplicationType.WEB


def registered_metadata(application: Application) -> dict[str, Any]:
    """The metadata of a registered client, without secrets."""
    found: dict[str, Any] = {
        "client_id": application.id,
        "client_id_issued_at": int(application.created_at.timestamp()),
        "application_type": "native" if application.type is ApplicationType.NATIVE else "web",
    }
    found |= {member: application.required_sender_constraint == name for name, member in _BOUND_TOKENS.items()}
    for member, setting in _MEMBERS.items():
        value = getattr(application, setting)
        if isinstance(value, frozenset):
            value = sorted(value)
        if value not in ("", None):
            found[member] = list(value) if isinstance(value, tuple | list) else value
    if application.jwks:
        found["jwks"] = json.loads(application.jwks)
    return found


def _required_constraint(metadata: Mapping[str, Any]) -> str | None:
    for member in _BOUND_TOKENS.values():
        if not isinstance(metadata.get(member, False), bool):
            raise InvalidClientMetadata(f"{member} must be a bool")
    required = [name for name, member in _BOUND_TOKENS.items() if metadata.get(member)]
    if len(required) > 1:
        raise InvalidClientMetadata(f"only one of {', '.join(_BOUND_TOKENS.values())} can be true")
    return next(iter(required), None)


def _is_of_kind(value: object, kind: type) -> bool:
    if kind is list:
        return isinstance(value, list) and all(isinstance(item, str) for item in value)
    return isinstance(value, kind)


def _key_set(metadata: Mapping[str, Any]) -> str:
    keys = metadata.get("jwks")
    if keys is None:
        return ""
    if not isinstance(keys, dict):
        raise InvalidClientMetadata("jwks must be an object")
    return json.dumps(keys)


def _refuse_software_statement(metadata: Mapping[str, Any]) -> None:
    statement = metadata.get("software_statement")
    if statement is None:
        return
    if not isinstance(statement, str) or statement.count(".") != 2:
        raise InvalidSoftwareStatement("software_statement must be a signed JWT")
    raise UnapprovedSoftwareStatement("no issuer of software statements is trusted here")


def _check_policy(values: Mapping[str, Any], project: Project, usual_grant_types: frozenset[str]) -> None:
    allowed = project.registration_grant_types or usual_grant_types
    # The response types decide about implicit; the rules of applications check that both agree.
    refused = sorted({*values["grant_types"]} - allowed)
    if refused:
        raise InvalidClientMetadata(
            f"grant_types may be {', '.join(sorted(allowed))}", reason="a grant type that the project does not allow"
        )
    for setting in _HOSTED:
        sent = values[setting]
        for uri in [sent] if isinstance(sent, str) else sent:
            if uri and not project.allows_redirect_host(_scheme(uri) if _is_private(uri) else _host(uri)):
                kind = InvalidRedirectUri if setting in _URI_MEMBERS else InvalidClientMetadata
                raise kind(
                    f"{setting}: the host is not one that clients may register here",
                    reason="a host that the project does not allow",
                )


def _scheme(uri: str) -> str:
    return uri.partition(":")[0].lower()


def _is_private(uri: str) -> bool:
    """True for a private-use scheme (RFC 8252 §7.1)."""
    return ":" in uri and "." in _scheme(uri) and "/" not in _scheme(uri)


def _host(uri: str) -> str:
    try:
        return (urlsplit(uri).hostname or "").lower()
    except ValueError:
        return ""


def _default_name(redirect_uris: list[str]) -> str:
    return next(filter(None, map(_host, redirect_uris)), "") or "Registered client"
