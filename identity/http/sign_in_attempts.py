"""Shared by the sign-in pages: the pending request and password attempts."""

from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import replace
from typing import Any, TypeVar

from pyramid.request import Request

from identity import instrumentation, password_hashing
from identity.cached_property import cached_property
from identity.crypto.secrets import new_token
from identity.domain.authentication import Proof
from identity.domain.directories import OrganizationDirectory
from identity.domain.errors import Conflict
from identity.domain.login_names import LoginName
from identity.domain.sessions import PendingAuthorization
from identity.domain.users import Subject
from identity.fair_semaphore import FairSemaphore
from identity.http.endpoint_routes import request_context
from identity.password_hashing import ServerBusy
from identity.provider.directory import (
    Directory,
    DirectoryAccountKind,
    DirectoryQuery,
    DirectoryUnavailable,
    select_directory_query,
)
from identity.provider.endpoints.authorization import PATH, load_sign_in
from identity.provider.interaction import SignIn
from identity.services.attempts import AttemptReservation, TooManyAttempts
from identity.services.passwords import PasswordAttempt

VerificationT = TypeVar("VerificationT")

WRONG_FACTOR = "wrong factor"


class PendingSignInContext:
    """The context of every page below ``/login/{request}``: a route factory. Raises SignInUnavailable, so that no view
    runs for a request that cannot continue in this browser."""

    def __init__(self, request: Request) -> None:
        self._request = request
        request_id = request.matchdict["request"]
        secret = request.browser_state.sign_ins.get(request_id)
        self.pending: PendingAuthorization = request.services.sign_ins.find(request_id, secret)

    @cached_property
    def sign_in(self) -> SignIn:
        """The state of the sign-in. Raises UnredirectableError if the application is gone; OAuthError."""
        return self.load_sign_in(self._request, self.pending)

    @staticmethod
    def load_sign_in(request: Request, pending: PendingAuthorization) -> SignIn:
        """The state of a sign-in of this browser, also outside of its own pages. Raises as ``sign_in`` does."""
        return load_sign_in(pending, request.browser_state, request_context(request))

    @property
    def resume_path(self) -> str:
        """Where a finished page redirects: the next step is decided there."""
        return f"{PATH}/{self.pending.id}"


def attempt_password(request: Request, login_name: LoginName, password: str) -> Subject | None:
    """The user whose password this is; None, indistinguishably, if it is wrong or they may not sign in. The attempt is
    counted and committed before the password is verified, without holding locks; without an outcome it counts as a
    failure. Raises TooManyAttempts; ServerBusy, and then it is released unless verification had begun."""
    return _record_outcome(Proof.PASSWORD_FACTOR, lambda: _attempt_password_once(request, login_name, password))


def _record_outcome(sign_in_method: str, attempt: Callable[[], VerificationT | None]) -> VerificationT | None:
    """Run the attempt and record its outcome for instrumentation."""
    outcome = instrumentation.Outcome.FAILED
    try:
        result = attempt()
        outcome = instrumentation.Outcome.REFUSED if result is None else instrumentation.Outcome.SUCCEEDED
    except TooManyAttempts:
        outcome = instrumentation.Outcome.RATE_LIMITED
        raise
    except ServerBusy:
        outcome = instrumentation.Outcome.BUSY
        raise
    finally:
        outcome.record_sign_in(sign_in_method)
    return result


def _attempt_password_once(request: Request, login_name: LoginName, password: str) -> Subject | None:
    organization_id = _quota_organization_id(request, login_name)
    trial, question = request.run_once("password attempt", lambda: _reserve_attempt(request, login_name))
    with FairSemaphore.organization_scope(organization_id, known_browser=trial.reservation.is_known_browser):
        return _verify_password(request, login_name, password, trial, question)


def _reserve_attempt(request: Request, login_name: LoginName) -> tuple[PasswordAttempt, DirectoryQuery | None]:
    trial: PasswordAttempt = request.services.passwords.begin_attempt(login_name, request.browser_state.known_browsers)
    directories = request.registry.application.protocol_registry.directories.values()
    return trial, select_directory_query(
        directories, trial.resolved_login, request.services, is_rate_limited=trial.reservation.is_rate_limited
    )


def _quota_organization_id(request: Request, login_name: LoginName) -> str:
    """The id of the organization whose hashing quota applies, by the domain entered; empty for none. Independent of
    whether the account exists, so that the remaining quota reveals no accounts."""
    domain = login_name.domain
    if not domain:
        return ""
    with request.services.read_session() as storage:
        named = storage.organizations.find_by_domain(domain)
        holder = storage.organizations.find_effective_domain(domain) if named is None else None
    if named is not None:
        return str(named.id)
    return "" if holder is None else str(holder.organization_id)


def _verify_password(
    request: Request, login_name: LoginName, password: str, attempt: PasswordAttempt, query: DirectoryQuery | None
) -> Subject | None:
    """Verify the password by a responsible directory, by a plugin, or by its hash."""
    identity = request.registry.application
    if query is not None and query.account_kind is not DirectoryAccountKind.NONE:
        return _verify_in_directory(request, query, attempt, password)
    if query is not None:
        with password_hashing.released_slot():
            query.directory.simulate_query(login_name)
    is_match = None
    was_looked_at = attempt.subject is not None and identity.check_password is not None
    if attempt.subject is not None and identity.check_password is not None:
        is_match = identity.check_password(attempt.subject.user, password, request.services.lookup)
    outdated_hash = None
    if is_match is None:
        try:
            judged = identity.process_state.hasher.verify(attempt.stored_hash, password, decoys=attempt.decoys)
        except ServerBusy:
            if not was_looked_at:
                request.services.passwords.release_attempt(attempt)
            raise
        is_match = judged.is_match
        if judged.needs_rehash:
            # It can be done at the next sign-in.
            with suppress(ServerBusy):
                outdated_hash = identity.process_state.hasher.hash(password)
    passwords = request.services.passwords
    if not is_match:
        passwords.fail_attempt(attempt)
        return None
    owner: Subject | None = passwords.complete_attempt(attempt, outdated_hash=outdated_hash)
    return owner


def _verify_in_directory(
    request: Request, question: DirectoryQuery, trial: PasswordAttempt, password: str
) -> Subject | None:
    """Verify the password in a directory, for a linked account or an unknown name. Raises ServerBusy for both alike if
    the directory does not respond; the attempt counts, as every attempt does."""
    directory, is_away, is_hashed = question.directory, False, False
    try:
        with password_hashing.released_slot():
            login_name = trial.resolved_login.login_name
            found = (
                directory.find_entry_by_id(question.entry_id) if question.entry_id else directory.find_entry(login_name)
            )
        trial, may_be_asked = _reserve_entry_attempt(request, question, trial, found)
        with password_hashing.released_slot():
            is_right = directory.verify_password(found if may_be_asked else None, password)
        if is_right and may_be_asked:
            mapped = _read_mapped_values(request, question, trial, found)
            subject = _accept_directory_user(request, directory, found, trial, mapped)
            if subject is not None:
                return subject
            is_hashed = trial.subject is None
    except DirectoryUnavailable:
        is_away = True
    if not is_hashed:
        # The same time as for locally stored accounts.
        request.registry.application.process_state.hasher.verify(None, password, decoys=trial.decoys)
    request.services.passwords.fail_attempt(trial, directory_unavailable=is_away)
    if is_away:
        raise ServerBusy(message="A directory does not answer just now.")
    return None


def _reserve_entry_attempt(
    request: Request, question: DirectoryQuery, trial: PasswordAttempt, found: Any
) -> tuple[PasswordAttempt, bool]:
    """The attempt, and whether the password may be verified at the entry that was found. An account's entry belongs to
    that account and only to its login name. Attempts at any other entry are counted by entry, because directories
    accept many spellings of a name."""
    services, directory, subject = request.services, question.directory, trial.resolved_login.subject
    owner = None if found is None else directory.linked_user_id(found, services)
    if subject is not None:
        return trial, owner == subject.user.id and question.sends_password
    is_free = found is not None and owner is None and question.sends_password
    if question.organization is not None:
        # The same work if there is no such entry.
        entry = directory.entry_key(found) if is_free else f"none {trial.resolved_login.login_name.comparison_key}"
        key, organization = f"{directory.name} {entry}", question.organization
        reservation = request.run_once(
            "entry attempt", lambda: services.attempts.reserve_directory_entry(trial.reservation, key, organization)
        )
        return replace(trial, reservation=reservation), is_free and not reservation.is_rate_limited
    return trial, is_free


def _read_mapped_values(
    request: Request, question: DirectoryQuery, trial: PasswordAttempt, found: Any
) -> tuple[OrganizationDirectory, Mapping[str, list[str]]] | None:
    """The directory of the organization, with the values that its mappings read; None without mappings."""
    subject = trial.resolved_login.subject
    organization = question.organization if subject is None else subject.organization
    if organization is None:
        return None
    source = OrganizationDirectory(question.directory.name, organization.id)
    names = request.services.directories.mapped_claims(source)
    if not names:
        return None
    with password_hashing.released_slot():
        return source, question.directory.read_values(found, names)


def _accept_directory_user(
    request: Request,
    directory: Directory[Any],
    found: Any,
    trial: PasswordAttempt,
    mapped: tuple[OrganizationDirectory, Mapping[str, list[str]]] | None,
) -> Subject | None:
    """Complete the attempt for the person found in a directory; None if they may not sign in."""
    # New accounts store a hash in place of a password; computed before anything is written.
    hashed = "" if trial.subject is not None else request.registry.application.process_state.hasher.hash(new_token())
    subject: Subject | None = directory.provision_account(found, trial.subject, request.services, hashed=hashed)
    if subject is None or not subject.is_active:
        return None
    if mapped is not None:
        subject = request.services.attribute_mappings.apply(subject, *mapped)
        request.services.group_mappings.apply(subject, *mapped, directory.normalize_value)
    request.services.attempts.confirm_password(trial.reservation, subject)
    return subject


def attempt_factor(
    request: Request, factor: str, subject: Subject | None, verify: Callable[[], VerificationT | None]
) -> VerificationT | None:
    """The result of ``verify`` for a factor of an authenticated person, or of one who authenticates by this factor
    alone; None if it fails, and also where ``subject`` is None because the factor belongs to no known account.

    ``factor`` is its name. As with passwords, the attempt is counted and committed before verification; without an
    outcome it counts as a failure. ``verify`` must get services from the request itself, since they are replaced at
    the commit. What it consumes is committed with what follows. Raises TooManyAttempts; ServerBusy, and then it
    counts, because verification may have begun."""
    return _record_outcome(factor, lambda: _attempt_factor_once(request, subject, verify))


def _attempt_factor_once(
    request: Request, subject: Subject | None, verify: Callable[[], VerificationT | None]
) -> VerificationT | None:
    def reserve() -> tuple[AttemptReservation, bool]:
        services, known = request.services, request.browser_state.known_browsers
        browser = None if subject is None else services.known_browsers.identify(subject.user.id, known)
        return services.attempts.reserve_factor_attempt(subject, browser), browser is not None

    reservation, is_known = request.run_once("factor attempt", reserve)
    try:
        with FairSemaphore.organization_scope(
            "" if subject is None else subject.organization.id, known_browser=is_known
        ):
            result = None if subject is None else verify()
    except Conflict:
        # It was consumed concurrently.
        result = None
    attempts = request.services.attempts
    if result is None or subject is None:
        attempts.record_refusal(subject, WRONG_FACTOR)
        return None
    attempts.confirm_factor(reservation, subject)
    return result
