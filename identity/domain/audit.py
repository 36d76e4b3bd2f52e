"""AuditEvent, who acted, and the catalogue of event names."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum


class ActorKind(StrEnum):
    """What kind of party acted."""

    USER = "user"
    CLIENT = "client"
    OPERATOR = "operator"
    SYSTEM = "system"
    ANONYMOUS = "anonymous"


@dataclass(frozen=True, slots=True, kw_only=True)
class Actor:
    """Who acts, and from where."""

    kind: ActorKind
    id: str | None = None
    client_address: str | None = None
    request_id: str | None = None


OPERATOR = Actor(kind=ActorKind.OPERATOR)
SYSTEM = Actor(kind=ActorKind.SYSTEM)


class Result(StrEnum):
    """How the attempt ended."""

    SUCCESS = "success"
    REFUSED = "refused"


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditEvent:
    """One line of the audit trail; never changed, never holding a secret.

    ``sequence`` is given by the storage and orders events. ``once`` makes a second event with the same value a
    no-op: it bounds how often one refusal is written.
    """

    id: str
    at: datetime
    event: str
    actor: Actor
    object_kind: str
    object_id: str | None
    organization_id: str | None = None
    result: Result = Result.SUCCESS
    reason: str | None = None
    detail: Mapping[str, object] = field(default_factory=dict)
    once: str | None = None
    sequence: int | None = None


#: Every event name, "subject.verb".
EVENTS: frozenset[str] = frozenset(
    f"{subject}.{verb}"
    for subject, verbs in {
        "instance": ("bootstrapped",),
        "organization": ("created", "changed", "deactivated", "reactivated", "removed"),
        "project": ("created", "changed", "deactivated", "reactivated", "removed"),
        "project_role": ("added", "changed", "removed"),
        "project_grant": ("added", "changed", "deactivated", "reactivated", "removed"),
        "user": ("created", "registered", "changed", "recovered"),
        "password": ("set", "changed", "link_issued", "link_asked"),
        "email": ("link_issued", "verified"),
        "session": ("started", "renewed", "ended"),
        "service_user": ("created", "changed", "deactivated", "reactivated", "removed"),
        "service_user_key": ("added", "removed", "expiring"),
        "service_user_secret": ("added", "removed"),
        "application": ("created", "deactivated", "reactivated", "removed", "disconnected"),
        "client_secret": ("added", "removed"),
        "manager": ("added", "changed", "removed"),
        "signing_key": ("added", "removed", "rewrapped"),
        "token": ("revoked", "replayed"),
        "authentication": ("refused",),
        "authorization": ("refused",),
        "access": ("refused",),
    }.items()
    for verb in verbs
)
