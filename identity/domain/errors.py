"""What a use case answers when it cannot do what was asked."""

from collections.abc import Mapping


class DomainError(Exception):
    """Base of every refusal by a use case.

    ``commits_transaction`` says whether what the transaction already holds must survive the refusal (a counter, a
    revocation); the rim commits or aborts by it.
    """

    commits_transaction = False


class Invalid(DomainError):
    """Values that break a rule; ``fields`` maps each field's name to a sentence that says what to do."""

    def __init__(self, fields: Mapping[str, str]) -> None:
        super().__init__("; ".join(f"{name}: {text}" for name, text in fields.items()))
        self.fields = dict(fields)


class NotFound(DomainError):
    """There is no such thing, or the caller may not know of it."""

    def __init__(self, kind: str, identifier: str) -> None:
        super().__init__(f"There is no {kind} {identifier}.")
        self.kind = kind
        self.identifier = identifier


class Conflict(DomainError):
    """The request contradicts the present state (a name is taken, a version is stale)."""


class Denied(DomainError):
    """The caller lacks a right; ``permission`` names it where there is one."""

    def __init__(self, message: str, *, permission: str | None = None) -> None:
        super().__init__(message)
        self.permission = permission
