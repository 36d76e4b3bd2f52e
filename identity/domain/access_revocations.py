"""What is revoked together: all that was opened with an account, an application or an organization."""

from dataclasses import dataclass

from identity.domain.deletion_impact import DeletionTarget
from identity.domain.users import Subject


@dataclass(frozen=True, slots=True)
class AccessScope:
    """The tokens of a user, of an application, or of an organization: of its users and its applications, except those
    of ``except_user_ids``."""

    target: DeletionTarget
    id: str
    except_user_ids: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class RevokedAccess:
    """How many sessions and tokens ended. ``left_out`` are users whose access was not revoked, because they have more
    rights than the caller."""

    sessions: int
    tokens: int
    left_out: tuple[Subject, ...] = ()
