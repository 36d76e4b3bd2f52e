"""Checks of a provider's settings: what works, what does not, and what to change."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any

from identity.api.crypto import InvalidKey
from identity.api.entities import UpstreamAuthentication, UpstreamKind, UpstreamProvider
from identity.api.pages import gettext_lazy as _
from identity.api.pages import ngettext_lazy
from identity.plugins.upstream.http_client import (
    ProviderHttpSession,
    ProviderResponseError,
    ProviderUnreachable,
)
from identity.plugins.upstream.provider_clients import (
    OpenIdProviderClient,
    ProviderClient,
    UpstreamClientCredentials,
    create_provider_client,
)
from identity.plugins.upstream.provider_metadata import (
    ProviderMetadata,
    ProviderMetadataCache,
    discovery_url,
    parse_metadata,
)

#: Texts of a provider are shown up to this length.
_LONGEST_TEXT = 200
#: The client was accepted, and the made-up code refused (RFC 6749 §5.2; GitHub).
_ACCEPTED = frozenset({"invalid_grant", "bad_verification_code"})
#: The client was refused. Entra says ``unauthorized_client`` for an unknown client id.
_REFUSED = frozenset({"invalid_client", "unauthorized_client", "incorrect_client_credentials"})


class CheckState(StrEnum):
    OK = "ok"
    WARNING = "warn"
    FAILED = "bad"


@dataclass(frozen=True, slots=True, kw_only=True)
class ProviderCheck:
    """A check's result in a few words, and what it means or what to change. ``is_private`` if the host has no public
    address, which only instance administrators may learn."""

    state: CheckState
    title: str
    text: str = ""
    is_private: bool = False

    @classmethod
    def unreachable(cls, problem: ProviderUnreachable) -> "ProviderCheck":
        return cls(
            state=CheckState.FAILED,
            title=_("The provider does not answer"),
            text=_(
                "Check the address, and whether the provider is reachable from the internet. The reason: {reason}.",
                reason=problem.user_message,
            ),
            is_private=problem.private,
        )


def check_provider(
    provider: UpstreamProvider,
    known: ProviderMetadataCache,
    asking: ProviderHttpSession,
    credentials: UpstreamClientCredentials,
    redirect_uri: str,
    now: datetime,
) -> tuple[ProviderCheck, ...]:
    """The results in order; a failure ends them if the rest depends on it. Metadata is fetched anew, and replaces what
    is cached."""
    found: list[ProviderCheck] = []
    client = create_provider_client(provider, known, asking)
    try:
        if isinstance(client, OpenIdProviderClient):
            for result in _check_metadata(client, known, asking):
                found.append(result)
                if result.state is CheckState.FAILED:
                    return tuple(found)
        found.append(_check_credentials(client, credentials, redirect_uri, now))
    except ProviderUnreachable as problem:
        found.append(ProviderCheck.unreachable(problem))
    except ProviderResponseError as problem:
        found.append(_failed(_("The provider gives a wrong answer"), _because(problem)))
    return tuple(found)


def _check_metadata(
    client: OpenIdProviderClient, known: ProviderMetadataCache, asking: ProviderHttpSession
) -> Iterator[ProviderCheck]:
    issuer = client.provider.effective_issuer
    try:
        document = asking.get_object(discovery_url(issuer))
    except ProviderResponseError as problem:
        yield _failed(
            _("There is no OpenID provider at this address"),
            _(
                "{url} must show its configuration. Check the address for typing errors. The reason: {reason}.",
                url=discovery_url(issuer),
                reason=problem.user_message,
            ),
        )
        return
    yield _ok(_("The provider answers"), _("Its configuration is at {url}.", url=discovery_url(issuer)))
    stated = document.get("issuer")
    if stated != issuer:
        yield _failed(
            _("It has another issuer"),
            _(
                "It calls itself {stated}, not {issuer}. If that is your provider, enter exactly this.",
                stated=_short(stated),
                issuer=issuer,
            ),
        )
        return
    yield _ok(_("The issuer matches"), issuer)
    try:
        metadata = parse_metadata(document, issuer)
    except ProviderResponseError as problem:
        yield _failed(_("Its configuration cannot be used"), _because(problem))
        return
    known.store_metadata(metadata)
    yield _check_keys(metadata, known, asking)
    yield from _check_scopes(client, document)
    yield from _check_authentication(client.provider, document)


def _check_keys(metadata: ProviderMetadata, known: ProviderMetadataCache, asking: ProviderHttpSession) -> ProviderCheck:
    try:
        keys = known.fetch_keys(metadata.jwks_uri, asking)
    except (ProviderResponseError, InvalidKey):
        keys = ()
    if not any(key.algorithms & metadata.algorithms for key in keys):
        return _failed(
            _("Its signing keys cannot be used"),
            _(
                "{url} must show a key for {algorithms}.",
                url=metadata.jwks_uri,
                algorithms=", ".join(sorted(metadata.algorithms)),
            ),
        )
    return _ok(
        _("Its signing keys are readable"),
        ngettext_lazy("It shows {n} key.", "It shows {n} keys.", len(keys)),
    )


def _check_scopes(client: OpenIdProviderClient, document: Mapping[str, Any]) -> Iterator[ProviderCheck]:
    supported = _texts(document.get("scopes_supported"))
    requested = client.requested_scopes
    missing = [scope for scope in requested.split() if scope not in supported]
    if not supported:
        # The member is only recommended (OpenID Connect Discovery §3).
        yield _warning(
            _("It does not say which scopes it supports"), _("We request {scopes}. A sign-in shows.", scopes=requested)
        )
    elif missing:
        yield _warning(
            _("It does not list every scope"),
            _(
                "We request {scopes}; it does not list {missing}. If a sign-in fails, change the scopes under More"
                " settings.",
                scopes=requested,
                missing=" ".join(missing),
            ),
        )
    else:
        yield _ok(_("It supports the scopes"), requested)


def _check_authentication(provider: UpstreamProvider, document: Mapping[str, Any]) -> Iterator[ProviderCheck]:
    method = (
        UpstreamAuthentication.CLIENT_SECRET_POST if provider.kind is UpstreamKind.APPLE else provider.authentication
    )
    # What is left out means this one (OpenID Connect Discovery §3).
    usual = (UpstreamAuthentication.CLIENT_SECRET_BASIC.value,)
    supported = _texts(document.get("token_endpoint_auth_methods_supported")) or usual
    if method.value not in supported:
        yield _warning(
            _("It does not list the authentication method"),
            _(
                "We use {method}; it lists {supported}. If the client is refused, change the method under More"
                " settings.",
                method=method.value,
                supported=_short(", ".join(supported)),
            ),
        )


def _check_credentials(
    client: ProviderClient, credentials: UpstreamClientCredentials, redirect_uri: str, now: datetime
) -> ProviderCheck:
    provider = client.provider
    status, error = client.probe_credentials(redirect_uri, credentials, now)
    if error in _ACCEPTED:
        return _ok(
            _("Client id and secret are accepted"),
            _("It refused a code that we made up, but not the client."),
        )
    if error == "redirect_uri_mismatch":
        return _failed(
            _("The callback address is not registered there"),
            _("Register exactly {redirect_uri} at the provider.", redirect_uri=redirect_uri),
        )
    # GitHub knows no client of an unknown id.
    if error in _REFUSED or status == 401 or (provider.kind is UpstreamKind.GITHUB and status == 404):
        reason = error or str(status)
        if provider.kind is UpstreamKind.APPLE:
            advice = _(
                "Check services id, team id and key id, and whether the key was revoked. It says {reason}.",
                reason=reason,
            )
        elif provider.uses_private_key_jwt and provider.kind is not UpstreamKind.GITHUB:
            advice = _(
                "Check the client id, and that it knows the key set of this service. It says {reason}.", reason=reason
            )
        else:
            advice = _(
                "Copy both again: the value of the secret, not its id. It may have expired. It says {reason}.",
                reason=reason,
            )
        return _failed(_("Client id or secret are refused"), advice)
    return _warning(
        _("It does not say whether it accepts the client"),
        _("It answered {status}. Try a sign-in to find out.", status=f"{status} {error}".strip()),
    )


def _ok(title: str, text: str = "") -> ProviderCheck:
    return ProviderCheck(state=CheckState.OK, title=title, text=text)


def _warning(title: str, text: str) -> ProviderCheck:
    return ProviderCheck(state=CheckState.WARNING, title=title, text=text)


def _failed(title: str, text: str) -> ProviderCheck:
    return ProviderCheck(state=CheckState.FAILED, title=title, text=text)


def _because(problem: ProviderResponseError) -> str:
    return _("The reason: {reason}.", reason=problem.user_message)


def _short(value: object) -> str:
    """A text of the provider, for its managers; other values as nothing."""
    return value[:_LONGEST_TEXT] if isinstance(value, str) and value.isprintable() else "—"


def _texts(value: object) -> tuple[str, ...]:
    return tuple(item for item in value if isinstance(item, str)) if isinstance(value, list) else ()
