"""Audit events, actors and the catalogue of event names."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import ClassVar


class ActorKind(StrEnum):
    USER = "user"
    CLIENT = "client"
    OPERATOR = "operator"
    SYSTEM = "system"
    ANONYMOUS = "anonymous"


@dataclass(frozen=True, slots=True, kw_only=True)
class Actor:
    """Who acts, through which client and session, and from where. ``client_id`` is the client that the access token was
    issued to, or that the user was signing in to; None for the service's own pages."""

    kind: ActorKind
    id: str | None = None
    client_id: str | None = None
    session_id: str | None = None
    client_address: str | None = None
    request_id: str | None = None

    def authenticated_as(
        self, kind: ActorKind, id: str, *, client_id: str | None = None, session_id: str | None = None
    ) -> "Actor":
        """The actor after authentication within the same request."""
        address, request_id = self.client_address, self.request_id
        return Actor(
            kind=kind, id=id, client_id=client_id, session_id=session_id, client_address=address, request_id=request_id
        )


OPERATOR = Actor(kind=ActorKind.OPERATOR)
SYSTEM = Actor(kind=ActorKind.SYSTEM)


#: Every event name, "subject.verb".
_EVENT_NAMES: frozenset[str] = frozenset(
    f"{subject}.{verb}"
    for subject, verbs in {
        "instance": ("bootstrapped",),
        "organization": (
            "created",
            "changed",
            "deactivated",
            "reactivated",
            "removed",
            "exported",
            "imported",
            "access_revoked",
        ),
        "directory": ("tested",),
        "domain": ("asked", "verified", "asserted", "removed"),
        "project": ("created", "changed", "deactivated", "reactivated", "removed"),
        "project_role": ("added", "changed", "removed"),
        "project_grant": ("accepted", "added", "changed", "deactivated", "ending", "reactivated", "removed"),
        "user_grant": ("added", "changed", "deactivated", "ending", "reactivated", "removed"),
        "group": ("added", "changed", "deactivated", "reactivated", "removed"),
        "group_member": ("added", "changed", "ending", "removed"),
        "group_grant": ("added", "changed", "ending", "removed"),
        "group_manager": ("added", "changed", "ending", "removed"),
        "group_mapping": ("added", "changed", "refused", "removed"),
        "user": (
            *("created", "registered", "changed", "deactivated", "reactivated", "removed"),
            *("recovered", "unlocked", "reported", "exported"),
            *("deletion_asked", "deletion_withdrawn"),
            *("impersonation_started", "impersonation_ended", "access_revoked"),
        ),
        "user_import": ("started", "finished"),
        "password": ("set", "changed", "link_issued", "link_asked"),
        "email": ("link_issued", "verified"),
        "factor": ("added", "changed", "used", "suspected", "removed", "reset"),
        "browser": ("remembered", "forgotten"),
        "policy": ("changed",),
        "mail_server": ("changed", "tested"),
        "mail": ("retried", "cancelled"),
        "mail_text": ("changed", "tested"),
        "session": ("started", "renewed", "ended"),
        "service_user": ("created", "changed", "deactivated", "reactivated", "removed", "access_revoked"),
        "agent": ("created", "confirmed", "stopped", "key_added"),
        "service_user_key": ("added", "removed", "expiring"),
        "service_user_secret": ("added", "removed"),
        "personal_access_token": ("added", "removed", "expiring"),
        "federated_credential": ("added", "removed"),
        "application": (
            *("created", "changed", "deactivated", "reactivated", "removed", "disconnected"),
            "access_revoked",
        ),
        "attribute": ("created", "changed", "removed"),
        "attribute_mapping": ("added", "changed", "refused", "removed"),
        "upstream_provider": ("created", "changed", "deactivated", "reactivated", "removed"),
        "webhook": (
            *("created", "changed", "deactivated", "reactivated", "removed"),
            *("secret_rotated", "secret_retired", "tested", "resent"),
        ),
        "linked_identity": ("added", "removed"),
        "identity_assertion": ("accepted", "issued"),
        "initial_access_token": ("added", "removed"),
        "device": ("approved", "denied", "disconnected"),
        "consent": ("given", "refused", "withdrawn"),
        "branding": ("changed",),
        "client_secret": ("added", "removed"),
        "manager": ("added", "changed", "ending", "removed"),
        "signing_key": ("added", "retired", "removed", "withdrawn", "rewrapped"),
        "legal_hold": ("placed", "released"),
        "backup": ("made", "restored"),
        "token": ("revoked", "replayed"),
        "authentication": ("refused",),
        "authorization": ("refused",),
        "access": ("refused",),
    }.items()
    for verb in verbs
)


class Result(StrEnum):
    SUCCESS = "success"
    REFUSED = "refused"


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditEvent:
    """An entry of the audit trail. It never contains a secret and never changes, except as ERASED describes.

    ``user_id`` is the user concerned, if the object belongs to a user, such as a granted role; ``group_id`` is the
    group of a membership or of roles. The storage assigns ``sequence``, which orders events. ``once`` makes further
    events with the same value a no-op, to limit repeated refusals."""

    #: Every event name.
    NAMES: ClassVar[frozenset[str]] = _EVENT_NAMES
    #: Users see this in their activity although nothing changed.
    SIGN_IN_REFUSED: ClassVar[str] = "authentication.refused"
    #: A manager signed in as the user; the detail says who, and why.
    IMPERSONATION_STARTED: ClassVar[str] = "user.impersonation_started"
    #: The end: by the manager, or by the service when the time was over.
    IMPERSONATION_ENDED: ClassVar[str] = "user.impersonation_ended"

    id: str
    at: datetime
    event: str
    actor: Actor
    object_kind: str
    object_id: str | None
    user_id: str | None = None
    group_id: str | None = None
    organization_id: str | None = None
    result: Result = Result.SUCCESS
    reason: str | None = None
    detail: Mapping[str, object] = field(default_factory=dict)
    once: str | None = None
    sequence: int | None = None


#: Replaces the detail of events about a deleted user, which contained names, addresses and browsers.
ERASED: Mapping[str, object] = {"erased": True}


#: In events of a project grant, the detail member that names the organization on the other side.
OTHER_ORGANIZATION = "other_organization_id"


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditFilter:
    """Selects events that match all given members; ``since`` is inclusive, ``until`` exclusive. ``event`` is a full
    name ("project.created") or a subject ("project": all events of projects). ``involved_id`` matches the actor and the
    object. Both also match events about a user's roles, keys and consents, and a group's members and roles."""

    organization_id: str | None = None
    event: str = ""
    actor_id: str = ""
    object_id: str = ""
    involved_id: str = ""
    request_id: str = ""
    result: Result | None = None
    since: datetime | None = None
    until: datetime | None = None

    @property
    def event_names(self) -> tuple[str, ...]:
        """The full event names to match, expanded if a subject is given; empty for all."""
        if not self.event or "." in self.event:
            return (self.event,) if self.event else ()
        # A text that is no subject matches as a full name, which may not exist.
        return tuple(sorted(name for name in AuditEvent.NAMES if name.startswith(f"{self.event}."))) or (self.event,)

    def matches(self, event: AuditEvent) -> bool:
        return (
            self.organization_id in (None, event.organization_id)
            and (not self.event or event.event in self.event_names)
            and self.actor_id in ("", event.actor.id)
            and self.object_id in ("", event.object_id, event.user_id, event.group_id)
            and self.involved_id in ("", event.actor.id, event.object_id, event.user_id, event.group_id)
            and self.request_id in ("", event.actor.request_id)
            and self.result in (None, event.result)
            and (self.since is None or self.since <= event.at)
            and (self.until is None or event.at < self.until)
        )


#: Matches every event.
UNFILTERED = AuditFilter()

#: Kinds of objects that a user owns or uses. Users must not learn of legal holds on them, so those are not included.
USER_OWNED_KINDS = frozenset(
    {
        *("user_grant", "manager", "group_member"),
        *("service_user_key", "service_user_secret", "personal_access_token", "application"),
        "federated_credential",
    }
)

#: Kinds of objects that belong to a group.
GROUP_OWNED_KINDS = frozenset({"group_member", "group_grant", "group_manager", "group_mapping"})
