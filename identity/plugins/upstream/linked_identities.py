"""Linked identities: local users by provider, issuer and subject."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from pyramid.request import Request

from identity.api.crypto import token_digest
from identity.api.entities import Conflict, UpstreamProvider
from identity.api.pages import gettext_lazy
from identity.api.services import Record, RecordService
from identity.plugins.upstream.provider_clients import ExternalUser
from identity.plugins.upstream.provider_registry import plugin_records

_RECORD_KIND = "link"
_LONGEST_NAME = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class LinkedIdentity:
    """An upstream identity of a local user. ``id`` names it in the account, ``name`` is its name at the provider."""

    id: str
    user_id: str
    provider_id: str
    issuer: str
    subject: str
    name: str
    linked_at: datetime
    last_used_at: datetime | None = None


class LinkedIdentities:
    """The stored links. Links of different providers are independent, even with the same issuer and subject."""

    def __init__(self, records: RecordService, now: datetime) -> None:
        self._records = records
        self._now = now

    @classmethod
    def for_request(cls, request: Request) -> "LinkedIdentities":
        return cls(plugin_records(request), request.services.now)

    def find_user_id(self, provider: UpstreamProvider, external_user: ExternalUser) -> LinkedIdentity | None:
        """The link with the local user's id."""
        record = self._records.find(_RECORD_KIND, _key(provider.id, external_user.issuer, external_user.subject))
        return None if record is None else _from_record(record)

    def list_user_identities(self, user_id: str) -> tuple[LinkedIdentity, ...]:
        """The user's links, newest first."""
        return tuple(_from_record(record) for record in self._records.list_by_owner(_RECORD_KIND, user_id=user_id))

    def add(self, provider: UpstreamProvider, external_user: ExternalUser, user_id: str) -> LinkedIdentity | None:
        """Link the identity; None if it is linked already. Raises Conflict if it is linked to another user, NotFound if
        the user is deleted."""
        content = {
            "provider": provider.id,
            "issuer": external_user.issuer,
            "subject": external_user.subject,
            "name": external_user_label(external_user.claims),
            "used": int(self._now.timestamp()),
        }
        key = _key(provider.id, external_user.issuer, external_user.subject)
        holder = self._records.add(_RECORD_KIND, key, content, user_id=user_id)
        if holder is not None and holder.user_id != user_id:
            raise Conflict(gettext_lazy("This account is linked to somebody else here."))
        if holder is not None:
            return None
        return LinkedIdentity(
            id=linked_identity_id(provider, external_user),
            user_id=user_id,
            provider_id=provider.id,
            issuer=external_user.issuer,
            subject=external_user.subject,
            name=str(content["name"]),
            linked_at=self._now,
        )

    def record_use(self, provider: UpstreamProvider, external_user: ExternalUser) -> None:
        """Record a sign-in, and the identity's current name."""
        record = self._records.find(_RECORD_KIND, _key(provider.id, external_user.issuer, external_user.subject))
        if record is not None:
            later = {"name": external_user_label(external_user.claims), "used": int(self._now.timestamp())}
            self._records.replace(record, {**record.value, **later})

    def remove(self, link: LinkedIdentity) -> bool:
        """Remove the link; False if it does not exist."""
        return self._records.delete(_RECORD_KIND, _key(link.provider_id, link.issuer, link.subject))


def linked_identity_id(provider: UpstreamProvider, external_user: ExternalUser) -> str:
    """The link's id, whether or not it exists."""
    return token_digest(_key(provider.id, external_user.issuer, external_user.subject)).hex()


def _key(provider_id: str, issuer: str, subject: str) -> str:
    return f"{provider_id}\n{issuer}\n{subject}"


def _from_record(record: Record) -> LinkedIdentity:
    content, zone = record.value, record.created_at.tzinfo
    return LinkedIdentity(
        id=record.key.hex(),
        user_id=record.user_id or "",
        provider_id=content["provider"],
        issuer=content["issuer"],
        subject=content["subject"],
        name=content["name"],
        linked_at=record.created_at,
        last_used_at=datetime.fromtimestamp(content["used"], zone),
    )


def external_user_label(claims: Mapping[str, Any]) -> str:
    """The name by which users recognize an upstream identity."""
    for name in ("email", "preferred_username", "name", "sub"):
        value = claims.get(name)
        if isinstance(value, str) and value.isprintable() and value:
            return value[:_LONGEST_NAME]
    return ""
