"""What the pages of a sign-in stand on: the request that waits, and the password that is tried."""

from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from typing import Any, TypeVar

from pyramid.request import Request
from pyramid.response import Response

from identity import hashing, watching
from identity.crypto.secrets import new_token
from identity.domain.authentication import PASSWORD
from identity.domain.errors import Conflict
from identity.domain.login_names import LoginName
from identity.domain.sessions import PendingAuthorization
from identity.domain.users import Subject
from identity.fair_shares import on_behalf_of
from identity.hashing import Busy
from identity.http.cookies import headers_for
from identity.http.endpoints import context_of
from identity.lazily import lazily
from identity.provider.directory import Absent, Directory, Part, Question, question_of
from identity.provider.endpoints.authorize import PATH, sign_in_of
from identity.provider.interaction import SignIn
from identity.provider.request import Cookie, CookieKind
from identity.services.attempts import Reservation, TooManyAttempts
from identity.services.passwords import Trial

Verdict = TypeVar("Verdict")

WRONG_FACTOR = "wrong factor"


class WaitingSignIn:
    """The context of every page below ``/login/{request}``: a route factory.

    Raises UnknownSignIn, ForeignSignIn, ExpiredSignIn, FinishedSignIn (identity.services.sign_ins), so that no view
    runs for a request that cannot go on in this browser.
    """

    def __init__(self, request: Request) -> None:
        self._request = request
        request_id = request.matchdict["request"]
        secret = request.browser.sign_ins.get(request_id)
        self.pending: PendingAuthorization = request.services.sign_ins.find(request_id, secret)

    @lazily
    def sign_in(self) -> SignIn:
        """How far it has come. Raises Unredirectable if the application is gone; OAuthError."""
        request = self._request
        return sign_in_of(self.pending, request.browser, context_of(request))

    @property
    def continue_at(self) -> str:
        """Where a finished page sends the browser: there it is decided what comes next."""
        return f"{PATH}/{self.pending.id}"


def try_password(request: Request, login_name: LoginName, password: str) -> Subject | None:
    """Whose password this is; None if it is wrong or they may not sign in, which nobody can tell apart.

    The attempt is counted and committed before the password is looked at, and nothing is locked meanwhile; without a
    verdict it stands. Raises TooManyAttempts; Busy, and then it is taken back unless anything was looked at.
    """
    return _told(PASSWORD, lambda: _try_password(request, login_name, password))


def _told(way: str, attempt: Callable[[], Verdict | None]) -> Verdict | None:
    """What the attempt brings; whoever watches is told what it came to."""
    outcome = watching.FAILED
    try:
        verdict = attempt()
        outcome = watching.REFUSED if verdict is None else watching.SUCCEEDED
    except TooManyAttempts:
        outcome = watching.HELD_BACK
        raise
    except Busy:
        outcome = watching.BUSY
        raise
    finally:
        watching.came_to(watching.SIGN_IN, way, outcome)
    return verdict


def _try_password(request: Request, login_name: LoginName, password: str) -> Subject | None:
    organization_id = _named_organization(request, login_name)
    trial, question = request.once("password attempt", lambda: _reserve(request, login_name))
    with on_behalf_of(organization_id, known_browser=trial.reservation.known_browser):
        return _judged(request, login_name, password, trial, question)


def _reserve(request: Request, login_name: LoginName) -> tuple[Trial, Question | None]:
    trial: Trial = request.services.passwords.reserve(login_name, request.browser.known)
    directories = request.registry.identity.protocol.directories.values()
    return trial, question_of(directories, trial.named, request.services, held=trial.reservation.held)


def _named_organization(request: Request, login_name: LoginName) -> str:
    """The id of the organization whose share a password counts for, by the typed domain alone; empty for none.

    Whether anybody has the name does not count: places that are left tell nothing of an account.
    """
    domain = login_name.domain
    if not domain:
        return ""
    with request.services.look() as storage:
        named = storage.organizations.find_by_domain(domain)
        holder = storage.organizations.find_domain_holder(domain) if named is None else None
    if named is not None:
        return str(named.id)
    return "" if holder is None else str(holder.organization_id)


def _judged(
    request: Request, login_name: LoginName, password: str, trial: Trial, question: Question | None
) -> Subject | None:
    """Whose password it is: by a directory that is concerned, by a plugin, or by its hash."""
    identity = request.registry.identity
    if question is not None and question.part is not Part.NONE:
        return _ask_directory(request, question, trial, password)
    if question is not None:
        with hashing.stepping_aside():
            question.directory.take_as_long(login_name)
    verdict = None
    was_looked_at = trial.subject is not None and identity.check_password is not None
    if trial.subject is not None and identity.check_password is not None:
        verdict = identity.check_password(trial.subject.user, password, request.services.lookup)
    outdated_hash = None
    if verdict is None:
        try:
            judged = identity.process.hasher.verify(trial.stored, password)
        except Busy:
            if not was_looked_at:
                request.services.passwords.given_back(trial)
            raise
        verdict = judged.matches
        if judged.outdated:
            # It can wait for the next time.
            with suppress(Busy):
                outdated_hash = identity.process.hasher.hash(password)
    passwords = request.services.passwords
    if not verdict:
        passwords.failed(trial)
        return None
    owner: Subject | None = passwords.succeeded(trial, outdated_hash=outdated_hash)
    return owner


def _ask_directory(request: Request, question: Question, trial: Trial, password: str) -> Subject | None:
    """Whose password it is by a directory, for a linked account or a name that nobody has.

    Raises Busy for both alike if the directory does not answer; that counts, as all does that was tried.
    """
    directory, is_away, is_hashed = question.directory, False, False
    try:
        with hashing.stepping_aside():
            login_name = trial.named.login_name
            found = directory.find_linked(question.link) if question.link else directory.find(login_name)
        trial, may_be_asked = _count_entry(request, question, trial, found)
        with hashing.stepping_aside():
            is_right = directory.verify(found if may_be_asked else None, password)
        if is_right and may_be_asked:
            subject = _admitted(request, directory, found, trial)
            if subject is not None:
                return subject
            is_hashed = trial.subject is None
    except Absent:
        is_away = True
    if not is_hashed:
        # As long as it takes for names that are kept here.
        request.registry.identity.process.hasher.verify(None, password)
    request.services.passwords.failed(trial, away=is_away)
    if is_away:
        raise Busy(message="A directory does not answer just now.")
    return None


def _count_entry(request: Request, question: Question, trial: Trial, found: Any) -> tuple[Trial, bool]:
    """The attempt, and whether the password may be tried at the entry that was found.

    An entry of an account is that account's alone, and only by the name that the account has. Attempts at any other are
    counted by the entry: directories find it by spellings that nobody foresees.
    """
    services, directory, subject = request.services, question.directory, trial.named.subject
    owner = None if found is None else directory.owner_of(found, services)
    if subject is not None:
        return trial, owner == subject.user.id and question.sends
    is_free = found is not None and owner is None and question.sends
    if question.organization is not None:
        # The same work where there is no such entry.
        entry = directory.key_of(found) if is_free else f"none {trial.named.login_name.key}"
        key, organization = f"{directory.name} {entry}", question.organization
        reservation = request.once(
            "entry attempt", lambda: services.attempts.reserve_entry(trial.reservation, key, organization)
        )
        return replace(trial, reservation=reservation), is_free and not reservation.held
    return trial, is_free


def _admitted(request: Request, directory: Directory[Any], found: Any, trial: Trial) -> Subject | None:
    """The person whom a directory has found, with the attempt over; None if they may not come in."""
    # New accounts keep something in place of a password; hashed before anything is written.
    hashed = "" if trial.subject is not None else request.registry.identity.process.hasher.hash(new_token())
    subject: Subject | None = directory.admit(found, trial.subject, request.services, hashed=hashed)
    if subject is None or not subject.active:
        return None
    request.services.attempts.succeeded(trial.reservation, subject)
    return subject


def try_factor(
    request: Request, factor: str, subject: Subject | None, verify: Callable[[], Verdict | None]
) -> Verdict | None:
    """What ``verify`` says of a factor of somebody who has proved who they are, or who proves it by this factor alone;
    None if it proves nothing, and also where ``subject`` is None, because it is nobody's that is known.

    ``factor`` names it. As with passwords the attempt is counted and committed before it is looked at, and without a
    verdict it stands.
    ``verify`` asks the request for services itself: they are others than before. What it uses up is committed with
    what follows. Raises TooManyAttempts; Busy, and then it counts: nobody here knows how much was looked at before.
    """
    return _told(factor, lambda: _try_factor(request, subject, verify))


def _try_factor(request: Request, subject: Subject | None, verify: Callable[[], Verdict | None]) -> Verdict | None:
    def reserve() -> tuple[Reservation, bool]:
        services, known = request.services, request.browser.known
        browser = None if subject is None else services.known_browsers.recognise(subject.user.id, known)
        return services.attempts.reserve_factor(subject, browser), browser is not None

    reservation, is_known = request.once("factor attempt", reserve)
    try:
        with on_behalf_of("" if subject is None else subject.organization.id, known_browser=is_known):
            verdict = None if subject is None else verify()
    except Conflict:
        # Somebody else used it at the same moment.
        verdict = None
    attempts = request.services.attempts
    if verdict is None or subject is None:
        attempts.refuse(subject, WRONG_FACTOR)
        return None
    attempts.factor_succeeded(reservation, subject)
    return verdict


def sign_in_anew(request: Request, *, target: str, login_name: str = "") -> Response:
    """303 to the pages of signing in, whoever is signed in at this browser already; at the end to ``target``.

    With a login name the password is asked at once.
    """
    settings = request.registry.identity.settings
    sign_ins = request.services.sign_ins
    pending, secret = sign_ins.begin({}, target=target)
    pending = sign_ins.choose(pending, None)
    if login_name:
        sign_ins.remember_login_name(pending, login_name)
    response = Response(status=303, headerlist=[("Content-Length", "0")])
    response.headers["Location"] = f"{settings.login_url}{PATH}/{pending.id}"
    cookie = Cookie(CookieKind.SIGN_IN, pending.id, secret, settings.sign_in_lifetime)
    for name, value in headers_for(request, (cookie,)):
        response.headers.add(name, value)
    return response
