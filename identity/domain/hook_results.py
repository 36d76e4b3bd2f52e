"""Results of hooks that decide."""

from inspect import iscoroutine


def hook_type_error_text(answer: object) -> str:
    """The error text for a result of the wrong type. An awaitable is closed and never runs."""
    if iscoroutine(answer):
        answer.close()
    return f"a {type(answer).__name__}"
