"""Claims about users, for ID token, userinfo and introspection; and the names that plugins may not set."""

import json
import logging
from collections.abc import Iterable, Mapping
from dataclasses import asdict
from typing import Any

from identity.domain.claims import RESERVED_CLAIMS
from identity.domain.tokens import PresentedAccessToken
from identity.domain.users import HumanUser, ServiceUser, User
from identity.provider.context import Context
from identity.provider.errors import TemporarilyUnavailable
from identity.provider.protocol_registry import NamedHook
from identity.provider.role_claims import response_role_claims
from identity.provider.scope import GrantedScopes, Scope

log = logging.getLogger(__name__)

MAX_CLAIMS_BYTES = 4096


def scope_claims(user: User, scopes: tuple[str, ...], context: Context) -> dict[str, Any]:
    """The user's claims for these granted scopes, including claims of plugins, without sub. A service user's name,
    preferred_username and updated_at need no scope (service description §2.5)."""
    if isinstance(user, ServiceUser):
        claims = {
            "name": user.display_name,
            "preferred_username": user.user_name,
            "updated_at": int(user.changed_at.timestamp()),
        }
    else:
        opened = context.protocol.scopes.claims_opened(scopes)
        claims = {name: value for name, value in _of_person(user).items() if name in opened} if opened else {}
    hooks = context.protocol.user_claims
    if hooks:
        merge_plugin_claims(claims, hooks, context, user=user, scopes=scopes)
    return claims


def token_claims(issued: PresentedAccessToken, context: Context, *, requested: tuple[str, ...] = ()) -> dict[str, Any]:
    """What a live token opens about its user, besides ``sub``: their claims if openid was granted, with those
    ``requested`` singly, and their roles; empty without a user."""
    token, subject = issued.token, issued.subject
    if subject is None:
        return {}
    claims: dict[str, Any] = {}
    if Scope.OPENID in token.scope:
        claims = scope_claims(subject.user, token.scope, context)
        claims |= requested_claims(subject.user, requested, context)
    granted = GrantedScopes(token.scope, token.audience)
    return claims | response_role_claims(subject, issued.client, granted, context)


def requested_claims(user: User, names: tuple[str, ...], context: Context) -> dict[str, Any]:
    """The values of these claims that are known, regardless of scopes (OpenID Connect Core §5.5)."""
    if not names:
        return {}
    known = scope_claims(user, context.protocol.scopes.scopes_for_claims(names), context)
    return {name: known[name] for name in names if name in known}


def merge_plugin_claims(claims: dict[str, Any], hooks: Iterable[NamedHook], context: Context, **arguments: Any) -> None:
    """Merge the claims of plugins into ``claims``: the first writer of a name wins, reserved names are refused. Raises
    TemporarilyUnavailable if a plugin fails, unless ``identity.hook_failure`` is ``ignore``."""
    lookup = context.services.lookup
    for plugin, hook in hooks:
        try:
            added = dict(hook(**arguments, lookup=lookup) or {})
            if not added:
                continue
            if not all(isinstance(name, str) for name in added):
                raise TypeError("names of claims are texts")
            if len(json.dumps(added)) > MAX_CLAIMS_BYTES:
                raise ValueError(f"claims of more than {MAX_CLAIMS_BYTES} bytes")
        except Exception as problem:
            log.exception("plugin %s failed to add claims", plugin)
            if context.settings.hook_failure == "refuse":
                raise TemporarilyUnavailable(
                    "the answer could not be completed", reason=f"plugin {plugin}"
                ) from problem
            continue
        reserved_prefixes = tuple(f"{namespace}:org:project:" for namespace in context.settings.urn_namespaces)
        for name, value in added.items():
            if name in RESERVED_CLAIMS or name.startswith(reserved_prefixes):
                log.error("plugin %s may not set the claim %s", plugin, name)
            elif name in claims:
                log.warning("plugin %s sets the claim %s, which is set already", plugin, name)
            else:
                claims[name] = value


def _of_person(user: HumanUser) -> Mapping[str, Any]:
    """All known standard claims (OpenID Connect Core §5.1)."""
    profile = user.profile
    address = {name: value for name, value in asdict(profile.address).items() if value}
    known: dict[str, Any] = {
        "name": profile.name or user.user_name,
        "given_name": profile.given_name,
        "family_name": profile.family_name,
        "middle_name": profile.middle_name,
        "nickname": profile.nickname,
        "preferred_username": user.user_name,
        "profile": profile.profile,
        "picture": profile.picture,
        "website": profile.website,
        "gender": profile.gender,
        "birthdate": profile.birthdate,
        "zoneinfo": profile.zoneinfo,
        "locale": profile.locale,
        "updated_at": int(user.changed_at.timestamp()),
        "email": profile.email,
        "phone_number": profile.phone,
        "address": address,
    }
    if profile.email:
        known["email_verified"] = profile.email_verified
    if profile.phone:
        known["phone_number_verified"] = profile.phone_verified
    return {name: value for name, value in known.items() if value not in ("", {})}
