"""Errors that services raise."""

from collections.abc import Mapping


class DomainError(Exception):
    """Base class of all refusals by services. ``commits_transaction`` says that changes made so far must survive the
    refusal, such as a counter or a revocation."""

    commits_transaction = False


class Invalid(DomainError):
    """Values are invalid; ``fields`` maps each field name to a sentence that says what to do."""

    def __init__(self, fields: Mapping[str, str]) -> None:
        super().__init__("; ".join(f"{name}: {text}" for name, text in fields.items()))
        self.fields = dict(fields)


class NotFound(DomainError):
    """The object does not exist, or the caller may not know of it."""

    def __init__(self, kind: str, identifier: str) -> None:
        super().__init__(f"There is no {kind} {identifier}.")
        self.kind = kind
        self.identifier = identifier


class Conflict(DomainError):
    """The request conflicts with the current state: a name is taken or a version is stale."""


class Denied(DomainError):
    """The caller lacks a right; ``permission`` names it, if there is one."""

    def __init__(self, message: str, *, permission: str | None = None) -> None:
        super().__init__(message)
        self.permission = permission
