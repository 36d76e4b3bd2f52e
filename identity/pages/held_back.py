"""What to say to somebody whose attempt was not even looked at."""

from identity.domain.words import say
from identity.hashing import Busy
from identity.pages.page import Again
from identity.services.passwords import TooManyAttempts

RESET = "/password/reset"


def held_back(problem: TooManyAttempts | Busy, *, password: bool = True) -> Again:
    """The form again, saying when to come back; what was counted stands. Without ``password``, no word of a reset."""
    retry = {"Retry-After": str(problem.seconds)}
    if isinstance(problem, Busy):
        message = say("We are busy just now. Wait {n} seconds, then send the page again.", n=problem.seconds)
        return Again(message, status=503, headers=retry, keep_changes=True)
    if problem.address:
        message = say(
            "Too many sign-ins from your network just now. Wait {n} seconds, then try again.", n=problem.seconds
        )
        return Again(message, status=429, headers=retry, keep_changes=True)
    if problem.exhausted:
        message = say("Too many attempts. Only a new password helps now.")
    else:
        message = say("Too many attempts. Wait {n} seconds, then try again.", n=problem.seconds)
    link = (RESET, say("You can also choose a new password.")) if password else None
    return Again(message, status=429, headers=retry, link=link, keep_changes=True)
