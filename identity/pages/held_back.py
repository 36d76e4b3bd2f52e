"""What to say to somebody whose attempt was not even looked at."""

from identity.domain.words import say, say_many
from identity.hashing import Busy
from identity.pages.page import Again
from identity.services.attempts import TooManyAttempts

RESET = "/password/reset"


def held_back(problem: TooManyAttempts | Busy, *, password: bool = True) -> Again:
    """The form again, saying when to come back: nothing was counted. Without ``password``, no word of a reset."""
    retry = {"Retry-After": str(problem.seconds)}
    if isinstance(problem, Busy):
        message = say_many(
            "We are busy just now. Wait {n} second, then send the page again.",
            "We are busy just now. Wait {n} seconds, then send the page again.",
            problem.seconds,
        )
        # That an attempt was given back stands.
        return Again(message, status=503, headers=retry, keep_changes=True)
    if problem.address:
        message = say_many(
            "Too many sign-ins from your network just now. Wait {n} second, then try again.",
            "Too many sign-ins from your network just now. Wait {n} seconds, then try again.",
            problem.seconds,
        )
        return Again(message, status=429, headers=retry)
    if problem.exhausted:
        # No time helps.
        retry = {}
        message = say(
            "Too many wrong passwords. This account can be entered with its password only in a browser that signed in"
            " to it before, until a manager unlocks it."
        )
        if not password:
            message = say(
                "Too many wrong attempts. This counts only in a browser that signed in to the account before, until a"
                " manager unlocks it."
            )
    else:
        message = say_many(
            "Too many attempts. Wait {n} second, then try again.",
            "Too many attempts. Wait {n} seconds, then try again.",
            problem.seconds,
        )
    link = (RESET, say("You can also choose a new password.")) if password else None
    return Again(message, status=429, headers=retry, link=link)
