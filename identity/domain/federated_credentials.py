"""Federated credentials: what an outside issuer must say in its tokens for them to stand for a program here."""

import json
import re
from collections.abc import Mapping
from datetime import datetime
from enum import StrEnum
from typing import Any

from identity.domain.entity import create_only, entity, read_only, versioned
from identity.domain.key_sets import key_set_error, key_set_url_error
from identity.domain.messages import gettext_lazy
from identity.domain.names import display_name_error, is_printable

#: For each service user or application.
MAX_FEDERATED_CREDENTIALS = 20
MAX_CONDITIONS = 10

#: Claims that identify a workload: its subject, and ids that are never given to another one.
IDENTIFYING_CLAIMS = frozenset({"sub", "repository_id", "repository_owner_id", "project_id", "namespace_id", "oid"})

_MAX_ISSUER_LENGTH = 500
_MAX_CONDITION_LENGTH = 500
_CLAIM = re.compile(r"[A-Za-z0-9_.:/-]{1,100}")
_TRUST_DOMAIN = re.compile(r"spiffe://[a-z0-9._-]{1,255}")
_PREFIX_PARTS = re.compile(r"[^:/]+")
_MIN_PREFIX_PARTS = 2


class IssuerKind(StrEnum):
    """How the keys of an issuer are found: by its discovery document, here or at a URL, or in the bundle of a SPIFFE
    trust domain."""

    OIDC = "oidc"
    JWKS = "jwks"
    SPIFFE = "spiffe"


def issuer_error(text: str) -> str | None:
    """The value of ``iss``: an https URL; or a SPIFFE trust domain."""
    if text.startswith("spiffe:"):
        fits = _TRUST_DOMAIN.fullmatch(text) is not None
        return None if fits else gettext_lazy("Enter a trust domain such as spiffe://example.org.")
    if not text or len(text) > _MAX_ISSUER_LENGTH or "?" in text or key_set_url_error(text) is not None:
        return gettext_lazy("Enter an issuer such as https://login.example.com.")
    return None


def condition_error(text: str) -> str | None:
    """A line such as ``sub = repo:acme/app:ref:refs/heads/main``. A value that ends in ``:*`` or ``/*`` is a prefix,
    which names at least two parts: the first alone would stand for all customers of an issuer."""
    wrong = gettext_lazy("Enter a line such as {example}.", example="sub = repo:acme/app:ref:refs/heads/main")
    if len(text) > _MAX_CONDITION_LENGTH or not is_printable(text) or "=" not in text:
        return wrong
    claim, value = split_condition(text)
    if not _CLAIM.fullmatch(claim) or not value:
        return wrong
    if "*" not in value:
        return None
    prefix = value.removesuffix("*")
    is_prefix = value.endswith("*") and "*" not in prefix and prefix.endswith((":", "/"))
    if not is_prefix or len(_PREFIX_PARTS.findall(prefix)) < _MIN_PREFIX_PARTS:
        return gettext_lazy(
            "Use * only at the end, after : or /, and after at least two parts: {example}.",
            example="sub = repo:acme/app:*",
        )
    return None


def split_condition(text: str) -> tuple[str, str]:
    claim, _, value = text.partition("=")
    return claim.strip(), value.strip()


@entity
class FederatedCredential:
    """Tokens of this issuer that meet all conditions stand for a service user or authenticate an application: exactly
    one of ``user_id`` and ``application_id`` is set. ``issuer`` is their ``iss``, or for SPIFFE the trust domain of
    their ``sub``. ``jwks`` or ``jwks_uri`` has the keys, unless discovery names them.

    One that ``instance_managed`` marks serves service users with a role at the instance, and applications of the
    instance."""

    id: str = read_only()
    name: str = create_only(validator=display_name_error)
    issuer: str = create_only(validator=issuer_error)
    conditions: tuple[str, ...] = create_only(item_validator=condition_error)
    kind: IssuerKind = create_only(default=IssuerKind.OIDC)
    jwks_uri: str = create_only(default="", validator=key_set_url_error)
    jwks: str = create_only(default="", validator=key_set_error)
    instance_managed: bool = create_only(default=False, permission="instance.write")
    created_at: datetime = versioned()
    last_used_at: datetime | None = read_only(default=None)
    user_id: str | None = read_only(default=None)
    application_id: str | None = read_only(default=None)

    @property
    def owner_id(self) -> str:
        """The id of the service user or application."""
        return self.user_id or self.application_id or ""

    @property
    def key_source(self) -> tuple[IssuerKind, str, str, str]:
        """What its keys depend on."""
        return self.kind, self.issuer, self.jwks_uri, self.jwks

    def is_issued_by(self, claims: Mapping[str, Any]) -> bool:
        """True if the claims name the issuer; SPIFFE says nothing of ``iss``, but of the beginning of ``sub``."""
        if self.kind is IssuerKind.SPIFFE:
            return str(claims.get("sub", "")).startswith(f"{self.issuer}/")
        return claims.get("iss") == self.issuer

    def find_unmet_claim(self, claims: Mapping[str, Any]) -> str | None:
        """The first claim that does not meet its condition; None if all are met."""
        for condition in self.conditions:
            claim, expected = split_condition(condition)
            if not _is_met(claims.get(claim), expected):
                return claim
        return None


def conditions_error(conditions: tuple[str, ...]) -> str | None:
    """What is wrong with the conditions together."""
    if len(conditions) > MAX_CONDITIONS:
        return gettext_lazy("Enter at most {n} conditions.", n=MAX_CONDITIONS)
    for condition in conditions:
        claim, value = split_condition(condition)
        if claim == "sub" or (claim in IDENTIFYING_CLAIMS and not value.endswith("*")):
            return None
    return gettext_lazy(
        "Add a condition on {names}: other claims alone do not say which workload it is.",
        names=", ".join(sorted(IDENTIFYING_CLAIMS)),
    )


def _is_met(value: object, expected: str) -> bool:
    if isinstance(value, (bool, int)):
        value = json.dumps(value)
    if not isinstance(value, str):
        return False
    return value.startswith(expected[:-1]) if expected.endswith("*") else value == expected
