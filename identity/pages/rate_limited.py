"""The form's message for an attempt that was refused before it was checked."""

from identity.domain.messages import gettext_lazy, ngettext_lazy
from identity.pages.page import FormRedisplay
from identity.password_hashing import ServerBusy
from identity.services.attempts import TooManyAttempts

PASSWORD_RESET_PATH = "/password/reset"  # noqa: S105 - a path


def rate_limit_response(error: TooManyAttempts | ServerBusy, *, password: bool = True) -> FormRedisplay:
    """The form again, with the time to come back. ``password=False`` omits the hint at a password reset."""
    retry = {"Retry-After": str(error.seconds)}
    if isinstance(error, ServerBusy):
        message = ngettext_lazy(
            "We are busy just now. Wait {n} second, then send the page again.",
            "We are busy just now. Wait {n} seconds, then send the page again.",
            error.seconds,
        )
        # The refund of the attempt is kept.
        return FormRedisplay(message, status=503, headers=retry, keep_changes=True)
    if error.address:
        message = ngettext_lazy(
            "Too many sign-ins from your network just now. Wait {n} second, then try again.",
            "Too many sign-ins from your network just now. Wait {n} seconds, then try again.",
            error.seconds,
        )
        return FormRedisplay(message, status=429, headers=retry)
    if error.exhausted:
        # Waiting does not help.
        retry = {}
        message = gettext_lazy(
            "Too many wrong passwords. This account can be entered with its password only in a browser that signed in"
            " to it before, until a manager unlocks it."
        )
        if not password:
            message = gettext_lazy(
                "Too many wrong attempts. This counts only in a browser that signed in to the account before, until a"
                " manager unlocks it."
            )
    else:
        message = ngettext_lazy(
            "Too many attempts. Wait {n} second, then try again.",
            "Too many attempts. Wait {n} seconds, then try again.",
            error.seconds,
        )
    link = (PASSWORD_RESET_PATH, gettext_lazy("You can also choose a new password.")) if password else None
    return FormRedisplay(message, status=429, headers=retry, link=link)
