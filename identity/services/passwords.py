"""Passwords of people: try, change, reset, and what makes a password good enough."""

import unicodedata
from dataclasses import dataclass
from datetime import datetime

from identity.crypto.secrets import digest, new_password
from identity.domain.attempts import ADDRESS_SPAN, ATTEMPTS_OF_ADDRESS
from identity.domain.errors import DomainError, Invalid, NotFound
from identity.domain.names import name_key
from identity.domain.one_time_codes import CodeKind, OneTimeCode
from identity.domain.users import HumanUser, PasswordHash, Subject
from identity.domain.words import say
from identity.hashing import Hasher
from identity.services.audit import Recorder
from identity.services.changes import Look, UseCases, told
from identity.services.links import Links, LinkUsed
from identity.services.sessions import Sessions
from identity.settings import Settings
from identity.storage.backend import Storage

LONGEST_PASSWORD = 256


class TooManyAttempts(DomainError):
    """The next attempt has to wait: ``seconds``; for ever if ``exhausted``, until the password is reset.

    ``address`` is True where not the account but the network address has tried too often.
    """

    keep_changes = True

    def __init__(self, seconds: int, *, exhausted: bool = False, address: bool = False) -> None:
        super().__init__("Too many attempts.")
        self.seconds = seconds
        self.exhausted = exhausted
        self.address = address


@dataclass(frozen=True, slots=True)
class Trial:
    """A reserved attempt: it counts as a failure until ``succeeded``. ``stored`` is None where nothing can match."""

    key: str
    login_name: str
    subject: Subject | None
    stored: str | None


class Passwords(UseCases):
    """What is expensive, hashing, happens between transactions: nobody waits for a lock meanwhile."""

    def __init__(
        self,
        storage: Storage,
        audit: Recorder,
        now: datetime,
        *,
        look: Look,
        sessions: Sessions,
        links: Links,
        hasher: Hasher,
        settings: Settings,
    ) -> None:
        super().__init__(storage, audit, now)
        self._look = look
        self._sessions = sessions
        self._links = links
        self._hasher = hasher
        self._settings = settings

    @property
    def min_length(self) -> int:
        """The fewest characters of a password."""
        return self._settings.password_min_length

    def reserve(self, login_name: str) -> Trial:
        """Ask for one attempt, counted per account and per address over all processes.

        To be committed before the password is looked at. The answer is the same whether the account exists or not.
        Raises TooManyAttempts.
        """
        address = self._audit.actor.client_address
        if address is not None:
            over = self._storage.attempts.count(
                f"address:{address}", at=self._now, span=ADDRESS_SPAN, most=ATTEMPTS_OF_ADDRESS
            )
            if over is not None:
                self._refuse(None, "too many attempts from one address")
                raise TooManyAttempts(self._seconds_until(over), address=True)
        subject = self._storage.users.find_by_login_name(login_name)
        person = subject is not None and isinstance(subject.user, HumanUser)
        # All spellings of a name are one account; a name that nobody has is counted like one.
        user_id = subject.user.id if person and subject is not None else None
        key = f"user:{user_id}" if user_id else f"name:{digest(name_key(login_name)).hex()}"
        attempt = self._storage.attempts.reserve(key, at=self._now, user_id=user_id)
        if not attempt.allowed:
            self._refuse(subject if person else None, "too many attempts at one account")
            raise TooManyAttempts(self._seconds_until(attempt.next_at), exhausted=attempt.exhausted)
        if subject is None or not person:
            return Trial(key, login_name, None, None)
        password = self._storage.passwords.find(subject.user.id)
        return Trial(key, login_name, subject, None if password is None else password.hash)

    def succeeded(self, trial: Trial, *, outdated_hash: str | None = None) -> Subject | None:
        """Whom the right password belongs to, with the count of failures cleared; None if they may not sign in.

        ``outdated_hash`` is a hash of the same password at today's cost, to be kept instead of the stored one.
        """
        subject = trial.subject and self._storage.users.find_subject(trial.subject.user.id)
        if subject is None or not subject.active:
            self._refuse(subject, "deactivated")
            return None
        if trial.stored is not None and not self._storage.passwords.is_still(subject.user.id, trial.stored):
            self._refuse(subject, "the password was changed meanwhile")
            return None
        self._storage.attempts.clear(trial.key)
        stored = self._storage.passwords.find(subject.user.id)
        if outdated_hash is not None and stored is not None and stored.hash == trial.stored:
            self._store(subject.user.id, outdated_hash, must_change=stored.must_change, changed_at=stored.changed_at)
        return subject

    def failed(self, trial: Trial) -> None:
        """Note that the password was wrong."""
        self._refuse(trial.subject, "unknown login name" if trial.subject is None else "wrong password")

    def must_change(self, user_id: str) -> bool:
        """True if the password was set by somebody else or for one use, or if there is none."""
        with self._look() as storage:
            stored = storage.passwords.find(user_id)
        return stored is None or stored.must_change

    def check(self, password: str, again: str | None, *, names: tuple[str, ...], field: str = "new_password") -> None:
        """Raise Invalid, for ``field``, unless the password is good enough (NIST SP 800-63B §3.1.1.2).

        ``names`` are those of the user, which are no passwords; ``again`` the second typing, None if there is none.
        """
        password_key = name_key(password)
        problem = None
        if not password:
            problem = say("Enter a password.")
        elif len(unicodedata.normalize("NFC", password)) < self.min_length:
            problem = say("Use at least {n} characters; several words work well.", n=self.min_length)
        elif len(password) > LONGEST_PASSWORD:
            problem = say("Use at most {n} characters.", n=LONGEST_PASSWORD)
        elif any(password_key == name_key(name) for name in names if name):
            problem = say("Do not use your user name.")
        elif is_common(password_key):
            problem = say("This password is too well known. Choose another.")
        if problem is not None:
            raise Invalid({field: problem})
        if again is not None and again != password:
            raise Invalid({f"{field}_again": say("Type the same password twice.")})

    def hash(self, password: str) -> str:
        """What is stored instead of it; takes a while. Raises Busy."""
        return self._hasher.hash(password)

    def change(self, subject: Subject, hashed: str, *, keep: str | None = None) -> None:
        """The new password of a person who knows the present one: their sessions, sign-ins that wait and links end.

        ``keep`` is the id of the session, or of the sign-in that waits, in which they chose it. With
        ``identity.password_change_ends_access`` what applications hold is revoked too. Raises NotFound.
        """
        self._change(subject, hashed, keep=keep, applications=self._settings.password_change_ends_access)

    def set_one_time(self, user_id: str) -> str:
        """A new password, to be told once and changed at the first sign-in.

        The one before ends, and with it everything that was opened as this person, as ``Sessions.end_access`` has it.
        Raises NotFound.
        """
        subject = self._found(self._storage.users.find_subject(user_id), "user", user_id)
        password = new_password()
        self._store(user_id, self._hasher.hash(password), must_change=True, changed_at=self._now)
        self._storage.attempts.clear(f"user:{user_id}")
        self._sessions.end_access(subject)
        self._audit.record("password.set", kind="user", id=user_id, organization_id=subject.organization.id)
        return password

    def issue_link(self, user_id: str) -> str:
        """A link, good once, by which the person chooses a new password; earlier ones stop working.

        Nothing else changes until it is used. Raises NotFound.
        """
        subject = self._found(self._storage.users.find_subject(user_id), "user", user_id)
        if not isinstance(subject.user, HumanUser):
            raise NotFound("user", user_id)
        link = self._links.issue(CodeKind.PASSWORD_RESET, user_id=user_id)
        self._audit.record("password.link_issued", kind="user", id=user_id, organization_id=subject.organization.id)
        return link

    def ask_for_link(self, login_name: str) -> tuple[Subject | None, str]:
        """For the mail to a person who forgot the password: who it is, and the link for a new one.

        None, and a link that opens nothing, if there is no active person of this name with an email address; that
        takes the same work. Earlier links stay good: strangers may ask too. Counted per network address. Raises
        TooManyAttempts.
        """
        self.count_address()
        subject = self._storage.users.find_by_login_name(login_name)
        known = subject if subject is not None and _can_be_written_to(subject) else None
        known_id = None if known is None else known.user.id
        link = self._links.issue(CodeKind.PASSWORD_RESET, user_id=known_id, replacing=False)
        # Names that nobody has are one: what a stranger types fills no trail.
        self._audit.record_once(
            f"password.link_asked|{known_id}|{int(self._now.timestamp()) // 60}",
            "password.link_asked",
            kind="user",
            id=known_id,
            organization_id=None if known is None else known.organization.id,
        )
        return known, link

    def count_address(self) -> None:
        """Count one request of a kind that strangers could repeat at will. Raises TooManyAttempts."""
        address = self._audit.actor.client_address
        if address is None:
            return
        over = self._storage.attempts.count(
            f"requests:{address}", at=self._now, span=ADDRESS_SPAN, most=ATTEMPTS_OF_ADDRESS
        )
        if over is not None:
            raise TooManyAttempts(self._seconds_until(over), address=True)

    def find_by_link(self, code: str) -> Subject:
        """Whose new password the link is for; looking uses nothing up. Raises LinkUsed."""
        found, _ = self._links.look(CodeKind.PASSWORD_RESET, code)
        return self._owner(found)

    def reset(self, code: str, hashed: str) -> Subject:
        """Use the link and store the new password's hash. Raises LinkUsed.

        Somebody else may have known the one before: everything that was opened with it ends, whatever the settings say.
        """
        used, _ = self._links.use(CodeKind.PASSWORD_RESET, code)
        subject = self._owner(used)
        self._change(subject, hashed, keep=None, applications=True)
        return subject

    def _change(self, subject: Subject, hashed: str, *, keep: str | None, applications: bool) -> None:
        user_id = subject.user.id
        self._store(user_id, hashed, must_change=False, changed_at=self._now)
        self._storage.attempts.clear(f"user:{user_id}")
        with self._audit.acting(user_id):
            self._sessions.end_access(subject, but=keep, applications=applications)
            self._audit.record("password.changed", kind="user", id=user_id, organization_id=subject.organization.id)

    def _owner(self, code: OneTimeCode) -> Subject:
        subject = None if code.user_id is None else self._storage.users.find_subject(code.user_id)
        if subject is None or not subject.active:
            raise LinkUsed
        return subject

    def _store(self, user_id: str, hashed: str, *, must_change: bool, changed_at: datetime) -> None:
        with told("user", user_id):
            self._storage.passwords.set(
                PasswordHash(user_id=user_id, hash=hashed, changed_at=changed_at, must_change=must_change)
            )

    def _seconds_until(self, moment: datetime) -> int:
        return max(1, int((moment - self._now).total_seconds()))

    def _refuse(self, subject: Subject | None, reason: str) -> None:
        self._audit.refuse(
            "authentication.refused",
            kind="user",
            id=None if subject is None else subject.user.id,
            organization_id=None if subject is None else subject.organization.id,
            reason=reason,
        )


def _can_be_written_to(subject: Subject) -> bool:
    return subject.active and isinstance(subject.user, HumanUser) and bool(subject.user.profile.email)


def is_common(password: str) -> bool:
    """True for a password that many people use, in any case."""
    # Thirty thousand words: loaded by the first password that somebody chooses.
    from zxcvbn.frequency_lists import FREQUENCY_LISTS

    return password in FREQUENCY_LISTS["passwords"]
