"""Verdicts: what plugins answer where they decide."""

from inspect import iscoroutine


def hook_type_error_text(answer: object) -> str:
    """What to call an answer that is no verdict. If it is one that is yet to be awaited, it never runs."""
    if iscoroutine(answer):
        answer.close()
    return f"a {type(answer).__name__}"
