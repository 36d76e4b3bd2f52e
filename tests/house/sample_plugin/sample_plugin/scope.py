"""A scope of a fixed name, and the claim that it opens."""

from identity.api.grants import ClaimsScope, Scope

SCOPE = "department"
CLAIM = "department"


def department_scope() -> Scope:
    """The scope; discovery shows it together with its claim."""
    return ClaimsScope(SCOPE, frozenset({CLAIM}))
