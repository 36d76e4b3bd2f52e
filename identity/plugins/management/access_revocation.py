"""What the operations that revoke access return."""

from identity.domain.access_revocations import RevokedAccess
from identity.plugins.management.representation import Representation

REVOCATION_DESCRIPTION = (
    "Sessions, tokens and codes end, remembered browsers are forgotten, personal access tokens are deleted. "
    "Passwords, keys, secrets and consents stay: deactivate first to keep everyone out."
)


class SparedUserRepresentation(Representation):
    """A user whose access was not revoked, because they have more rights than the caller."""

    id: str
    login_name: str


class RevokedAccessRepresentation(Representation):
    """How many sessions and tokens ended, and who was left out."""

    sessions: int
    tokens: int
    left_out: tuple[SparedUserRepresentation, ...]


def represent_revocation(revoked: RevokedAccess) -> RevokedAccessRepresentation:
    return RevokedAccessRepresentation(
        sessions=revoked.sessions,
        tokens=revoked.tokens,
        left_out=tuple(
            SparedUserRepresentation(id=subject.user.id, login_name=subject.login_name) for subject in revoked.left_out
        ),
    )
