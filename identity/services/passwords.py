"""Users' passwords: verify, change, reset, and check new ones against the policy."""

import unicodedata
from collections.abc import Container, Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from identity.crypto.imported_hashes import HashScheme
from identity.crypto.secrets import new_password
from identity.domain.errors import Invalid, NotFound
from identity.domain.login_names import LoginName
from identity.domain.messages import gettext_lazy
from identity.domain.names import name_key
from identity.domain.organizations import Organization
from identity.domain.users import GLOBALLY_TRUSTED_VERIFIERS, EmailVerifier, HumanUser, PasswordHash, Subject
from identity.fair_semaphore import assign_organization
from identity.password_hashing import PasswordHasher
from identity.services.attempts import ACCOUNT_LIMIT_REASON, AttemptReservation, AttemptService
from identity.services.audit import diff_fields
from identity.services.base import Service, translate_storage_errors
from identity.services.instance_managers import InstanceManagerService
from identity.services.known_browsers import KnownBrowserService
from identity.services.login_names import LoginNameService, ResolvedLogin
from identity.services.name_conflicts import is_login_name_of_other_user
from identity.services.one_time_links import OneTimeLinkKind, OneTimeLinkService, link_recipient
from identity.services.policies import PolicyService
from identity.services.records import RecordService
from identity.services.sessions import SessionService
from identity.storage.stores.users import MAX_USERS_PER_EMAIL

LONGEST_PASSWORD = 256

#: Schemes of imported hashes. Every attempt computes all of them, so there can be few, and each for a limited time.
_SCHEMES_KIND, _SCHEMES_KEY = "imported_hashes", "schemes"
MAX_IMPORTED_SCHEMES = 3
_SCHEMES_LAST = timedelta(days=400)
_SCHEMES_RENEWED = timedelta(days=390)

_TOO_MANY_SCHEMES = gettext_lazy(
    "Hashes with {n} different parameters were imported already; these have others. Invite the person.",
    n=MAX_IMPORTED_SCHEMES,
)

#: Failure reasons in the audit trail.
_WRONG, _AWAY = "wrong password", "the directory does not answer"


@dataclass(frozen=True, slots=True)
class PasswordAttempt:
    """A reserved attempt: it counts as a failure until ``complete_attempt`` or ``release_attempt``.
    ``resolved_login`` is the user of the name, whether or not they can sign in. ``subject`` and ``stored_hash``
    are None if no password can match; then ``audited_subject`` and ``failure_reason`` are for the audit trail.
    ``decoys`` are what verification has to compute for every account."""

    resolved_login: ResolvedLogin
    reservation: AttemptReservation
    subject: Subject | None
    stored_hash: str | None
    audited_subject: Subject | None
    failure_reason: str
    decoys: tuple[HashScheme, ...] = ()


@dataclass(eq=False, repr=False)
class PasswordService(Service):
    """Hashing is expensive and happens between transactions, so that no lock is held meanwhile."""

    _attempts: AttemptService
    _holders: InstanceManagerService
    _login_names: LoginNameService
    _known_browsers: KnownBrowserService
    _sessions: SessionService
    _links: OneTimeLinkService
    _hasher: PasswordHasher
    _policies: PolicyService
    _password_blocklist: Container[str]
    _records: RecordService

    def min_length(self, owner: Subject | Organization) -> int:
        """Minimum password length for the person, or for new people in the organization."""
        return self._policies.effective_policy(owner).password_min_length or self._settings.password_min_length

    def begin_attempt(self, login_name: LoginName, presented: Mapping[str, str]) -> PasswordAttempt:
        """Reserve an attempt, counted over all processes; ``presented`` are the known-browser secrets of the request.
        Commit before you verify the password. The result is the same whether or not the account exists. Raises
        TooManyAttempts."""
        named = self._login_names.resolve(login_name)
        found = named.subject
        subject = found if found is not None and isinstance(found.user, HumanUser) else None
        browser = None if subject is None else self._known_browsers.identify(subject.user.id, presented)
        reservation = self._attempts.reserve_password_attempt(login_name, subject, browser, by_email=named.is_by_email)
        decoys = self.list_imported_schemes()
        if subject is None:
            return PasswordAttempt(named, reservation, None, None, None, "unknown login name", decoys)
        if reservation.is_rate_limited:
            return PasswordAttempt(named, reservation, None, None, subject, ACCOUNT_LIMIT_REASON, decoys)
        password = self._storage.users.find_password(subject.user.id)
        return PasswordAttempt(
            named, reservation, subject, None if password is None else password.hash, subject, _WRONG, decoys
        )

    def complete_attempt(self, trial: PasswordAttempt, *, outdated_hash: str | None = None) -> Subject | None:
        """Clear the failures after a correct password; None if the user may not sign in. ``outdated_hash`` is a hash of
        the same password at the current cost, stored instead of the present hash."""
        subject = trial.subject and self._storage.users.find_subject(trial.subject.user.id)
        if subject is None or not subject.is_active:
            self._attempts.record_refusal(subject, "deactivated")
            return None
        if trial.stored_hash is not None and not self._storage.users.lock_password_hash(
            subject.user.id, trial.stored_hash
        ):
            self._attempts.record_refusal(subject, "the password was changed meanwhile")
            return None
        self._attempts.confirm_password(trial.reservation, subject)
        stored = self._storage.users.find_password(subject.user.id)
        if outdated_hash is not None and stored is not None and stored.hash == trial.stored_hash:
            self._store(subject.user.id, outdated_hash, must_change=stored.must_change, changed_at=stored.changed_at)
        return subject

    def fail_attempt(self, trial: PasswordAttempt, *, directory_unavailable: bool = False) -> None:
        """Record a wrong password, or with ``directory_unavailable`` that the directory could not verify it. Raises
        TooManyAttempts where only a correct password would have been accepted."""
        refusal = trial.reservation.error
        self._attempts.record_refusal(
            trial.audited_subject,
            ACCOUNT_LIMIT_REASON if refusal is not None else _AWAY if directory_unavailable else trial.failure_reason,
        )
        if refusal is not None:
            raise refusal

    def release_attempt(self, trial: PasswordAttempt) -> None:
        """Release an attempt whose password was never verified: nothing counts."""
        self._attempts.release(trial.reservation)

    def list_imported_schemes(self) -> tuple[HashScheme, ...]:
        """The schemes of hashes imported from other systems."""
        record = self._records.find(_SCHEMES_KIND, _SCHEMES_KEY)
        return () if record is None else tuple(map(HashScheme.from_text, record.value["schemes"]))

    def add_imported_scheme(self, scheme: HashScheme) -> None:
        """Let every attempt compute this scheme, too, before an account has such a hash. Raises Invalid beyond
        MAX_IMPORTED_SCHEMES."""
        expires_at = self._now + _SCHEMES_LAST
        record = self._records.find(_SCHEMES_KIND, _SCHEMES_KEY)
        schemes = [] if record is None else list(record.value["schemes"])
        is_known = scheme.text in schemes
        if record is not None and is_known and record.expires_at and record.expires_at > self._now + _SCHEMES_RENEWED:
            return
        if not is_known and len(schemes) >= MAX_IMPORTED_SCHEMES:
            raise Invalid({"password_hash": _TOO_MANY_SCHEMES})
        if record is not None:
            self._records.delete(_SCHEMES_KIND, _SCHEMES_KEY)
        schemes = schemes if is_known else [*schemes, scheme.text]
        self._records.add(_SCHEMES_KIND, _SCHEMES_KEY, {"schemes": schemes}, expires_at=expires_at)

    def set_imported(self, user_id: str, sealed_hash: str) -> None:
        """Store the sealed hash of another system for a new account. The first correct password replaces it. Raises
        NotFound."""
        self._store(user_id, sealed_hash, must_change=False, changed_at=self._now)

    def must_change(self, user_id: str) -> bool:
        """True if the password is one-time, was set by someone else or does not exist."""
        with self._look() as storage:
            stored = storage.users.find_password(user_id)
        return stored is None or stored.must_change

    def require_acceptable(
        self,
        password: str,
        confirmation: str | None,
        *,
        owner: Subject | Organization,
        names: tuple[str, ...] = (),
        field: str = "new_password",
    ) -> None:
        """Raise Invalid for ``field`` unless the password meets the policy of the person, or of new people in the
        organization (NIST SP 800-63B §3.1.1.2). The person's names, and those of ``names``, are refused as passwords;
        ``confirmation`` is the repeated entry, None if there is none."""
        if isinstance(owner, Subject):
            email = owner.user.profile.email if isinstance(owner.user, HumanUser) else ""
            names = (owner.user.user_name, owner.login_name, email, *names)
        # The organization is charged for the hashing.
        assign_organization(owner.organization.id if isinstance(owner, Subject) else owner.id)
        password_key, least = name_key(password), self.min_length(owner)
        strength = self._policies.effective_policy(owner).password_strength
        problem = None
        if not password:
            problem = gettext_lazy("Enter a password.")
        elif len(unicodedata.normalize("NFC", password)) < least:
            problem = gettext_lazy("Use at least {n} characters; several words work well.", n=least)
        elif len(password) > LONGEST_PASSWORD:
            problem = gettext_lazy("Use at most {n} characters.", n=LONGEST_PASSWORD)
        elif any(password_key == name_key(name) for name in names if name):
            problem = gettext_lazy("Do not use your user name.")
        elif password_key in self._password_blocklist or is_common_password(password_key):
            problem = gettext_lazy("This password is too well known. Choose another.")
        elif strength and estimate_strength(password, names) < strength:
            problem = gettext_lazy(
                "This password is too easy to guess. Add a word or two that have nothing to do with it."
            )
        if problem is not None:
            raise Invalid({field: problem})
        if confirmation is not None and confirmation != password:
            raise Invalid({f"{field}_again": gettext_lazy("Type the same password twice.")})

    def refuse_current_password(self, user_id: str, password: str) -> None:
        """Raise Invalid if the user already has this password and someone else knows it. Raises
        ServerBusy."""
        with self._look() as storage:
            stored = storage.users.find_password(user_id)
        if stored is not None and self._hasher.verify(stored.hash, password).is_match:
            raise Invalid({"new_password": gettext_lazy("Choose a password other than the one you were given.")})

    def hash(self, password: str) -> str:
        """Slow. Raises ServerBusy."""
        return self._hasher.hash(password)

    def change(self, subject: Subject, hashed: str, *, except_session: str | None = None) -> None:
        """Store the new password of a user who knows the current one. Their sessions, pending sign-ins and links end.

        ``except_session`` is the id of the session or pending sign-in in which they chose it. With
        ``identity.password_change_ends_access`` the tokens of applications are revoked, too. Raises NotFound, also
        if that session ended after the current password was verified, so that knowing the old password cannot undo a
        reset.
        """
        self._change(
            subject,
            hashed,
            keep=except_session,
            applications=self._settings.password_change_ends_access,
            agents=False,
        )
        # Last: a concurrent password change has ended the session by now.
        session = None if except_session is None else self._storage.sessions.find(except_session)
        if session is not None and session.ended_at is not None:
            raise NotFound("session", session.id)

    def requires_change_after_reset(self, owner: Subject | Organization) -> bool:
        """True if the person must change a password that someone else sets for them."""
        return self._policies.effective_policy(owner).password_change_after_reset is not False

    def set_one_time_password(self, user_id: str) -> str:
        """Set and return a random password. It must be changed at the first sign-in unless the policy says otherwise.
        The former password stops working, and everything opened as this person ends, as by
        ``SessionService.revoke_access``. Raises NotFound."""
        subject = self._get_subject(user_id)
        password = new_password()
        must_change = self.requires_change_after_reset(subject)
        self._store(user_id, self._hasher.hash(password), must_change=must_change, changed_at=self._now)
        self._attempts.reset(subject)
        self._sessions.revoke_access(subject)
        self._record_about("password.set", subject)
        return password

    def require_change(self, user_id: str) -> None:
        """Require a new password at the next sign-in; the current one is accepted only for that. Does nothing for
        people without a password. Also applies to a password that is being set concurrently."""
        stored = self._storage.users.find_password(user_id)
        while stored is not None and not self._storage.users.lock_password_hash(user_id, stored.hash):
            stored = self._storage.users.find_password(user_id)
        if stored is not None:
            self._store(user_id, stored.hash, must_change=True, changed_at=stored.changed_at)

    def issue_reset_link(self, user_id: str, *, mailed_to: str = "") -> str:
        """Issue a single-use link to choose a new password; earlier ones stop working. Nothing else changes until it is
        used. With ``mailed_to`` it goes only to that address, and using it proves that the person reads the mailbox.
        Raises NotFound."""
        subject = self._get_subject(user_id)
        if not isinstance(subject.user, HumanUser):
            raise NotFound("user", user_id)
        lifetime = self.reset_link_lifetime(user_id)
        link = self._links.issue(
            OneTimeLinkKind.PASSWORD_RESET, user=subject.user, lifetime=lifetime, recipient=mailed_to
        )
        self._record_about("password.link_issued", subject)
        return link

    def reset_link_lifetime(self, user_id: str) -> timedelta:
        """Lifetime of a link that a manager issues for the person: longer for people without a password."""
        invited = self._storage.users.find_password(user_id) is None
        return self._settings.invitation_lifetime if invited else self._settings.one_time_link_ttl

    def request_reset_link(self, login_name: str) -> tuple[Subject | None, str]:
        """The user who forgot their password, and a reset link to mail to them. Returns None and a link that opens
        nothing if no active user of this name has an email address; that takes the same time. Earlier links stay
        valid, because anyone may request one. Rate-limited per network address. Raises TooManyAttempts."""
        self._attempts.count_request()
        subject = self._login_names.find_by_login_name(LoginName.parse(login_name))
        known = None if subject is None else _reader(subject)
        # Also queried for unknown names, so that timing does not reveal accounts.
        self._holders.is_instance_manager("" if known is None else known.id)
        if known is not None and not self._holders.is_address_trusted(known):
            known = None
        return (None if known is None else subject), self._link_for(known)

    def is_login_name(self, login_name: str) -> bool:
        """True if it is the login name of an account, active or not. Then it means only that account and is not taken
        as an email address."""
        return self._login_names.find_by_login_name(LoginName.parse(login_name)) is not None

    def find_subjects_by_email(self, key: str, organization_id: str) -> tuple[Subject, ...]:
        """Accounts that the address with this ``email_key`` can recover: those that verified it themselves, and those
        of the organization, if given, that have it verified. Oldest first, at most MAX_USERS_PER_EMAIL."""
        users = self._storage.users
        subjects = users.find_by_verified_email(key, is_proven=True, active=True)
        if organization_id:
            members = users.find_by_verified_email(key, organization_id=organization_id, active=True)
            subjects = tuple({subject.user.id: subject for subject in (*members, *subjects)}.values())
        may_be = (
            subject
            for subject in subjects
            if isinstance(subject.user, HumanUser) and self._holders.is_address_trusted(subject.user)
        )
        return tuple(may_be)[:MAX_USERS_PER_EMAIL]

    def can_set_password(self, subject: Subject) -> bool:
        """False for people who have signed in and have no password: they use another method."""
        user = subject.user
        has_signed_in = isinstance(user, HumanUser) and user.last_sign_in_at is not None
        return not has_signed_in or self._storage.users.find_password(user.id) is not None

    def issue_mailed_reset_link(self, subject: Subject) -> str:
        """Issue a reset link to mail to a person who entered their address. Earlier links stay valid."""
        return self._link_for(_reader(subject))

    def _link_for(self, known: HumanUser | None) -> str:
        known_id = None if known is None else known.id
        address = "" if known is None else known.profile.email
        link = self._links.issue(OneTimeLinkKind.PASSWORD_RESET, user=known, revoke_earlier=False, recipient=address)
        # All unknown names share one event, so that anonymous clients cannot fill the audit trail.
        self._audit.record_once(
            f"password.link_asked|{known_id}|{int(self._now.timestamp()) // 60}",
            "password.link_asked",
            kind="user",
            id=known_id,
            organization_id=None if known is None else known.organization_id,
        )
        return link

    def find_by_reset_link(self, code: str) -> Subject:
        """Whose password the link resets, without redeeming it. Raises InvalidOneTimeLink."""
        owner, _ = self._links.read(OneTimeLinkKind.PASSWORD_RESET, code)
        return self._links.get_owner(owner)

    def reset(self, code: str, hashed: str) -> Subject:
        """Redeem the link and store the new password's hash. Raises InvalidOneTimeLink. Someone else may have known the
        former password: everything opened with it ends, whatever the settings."""
        owner, content = self._links.redeem(OneTimeLinkKind.PASSWORD_RESET, code)
        subject = self._links.get_owner(owner)
        self._change(subject, hashed, keep=None, applications=True, agents=True)
        self._prove_address(subject, link_recipient(content))
        return subject

    def _prove_address(self, subject: Subject, address: str) -> None:
        """Mark the address as verified: the link went only there and was used. Raises Conflict if the account was
        changed concurrently."""
        before = subject.user
        if not isinstance(before, HumanUser) or not address or address != before.profile.email:
            return
        if before.email_verified_by in GLOBALLY_TRUSTED_VERIFIERS or is_login_name_of_other_user(
            self._storage, before, address
        ):
            return
        after = replace(
            before,
            profile=replace(before.profile, email_verified=True),
            email_verified_by=EmailVerifier.OWN_LINK,
            named_at=before.named_at or self._now,
            changed_at=self._now,
            version=before.version + 1,
        )
        with translate_storage_errors("user", before.id):
            self._storage.users.update(after)
        with self._audit.acting_as(before.id):
            self._audit.record(
                "email.verified",
                kind="user",
                id=before.id,
                organization_id=before.organization_id,
                detail=diff_fields(before, after),
            )

    def _change(self, subject: Subject, hashed: str, *, keep: str | None, applications: bool, agents: bool) -> None:
        user_id = subject.user.id
        self._store(user_id, hashed, must_change=False, changed_at=self._now)
        self._attempts.reset(subject)
        with self._audit.acting_as(user_id):
            self._sessions.revoke_access(subject, except_session=keep, applications=applications, agents=agents)
            self._record_about("password.changed", subject)

    def _store(self, user_id: str, hashed: str, *, must_change: bool, changed_at: datetime) -> None:
        with translate_storage_errors("user", user_id):
            self._storage.users.set_password(
                PasswordHash(user_id=user_id, hash=hashed, changed_at=changed_at, must_change=must_change)
            )


def _reader(subject: Subject) -> HumanUser | None:
    """The person, if they can receive mail and may sign in."""
    user = subject.user
    return user if subject.is_active and isinstance(user, HumanUser) and user.profile.email else None


def is_common_password(password: str) -> bool:
    """True for a password that many people use, ignoring case."""
    # 30,000 words: imported when first needed.
    from zxcvbn.frequency_lists import FREQUENCY_LISTS

    return password in FREQUENCY_LISTS["passwords"]


#: Substitutes for the same letter count once: each further variant multiplies the work.
_ALIKE = str.maketrans("{[<@$!|+", "(((45117")
#: Longer passwords are strong enough, and the work grows with the square of the length.
_JUDGED = 48


def estimate_strength(password: str, names: tuple[str, ...]) -> int:
    """Strength from 0 to 4 against an attacker who knows these names."""
    from zxcvbn import zxcvbn

    judged = password[:_JUDGED].translate(_ALIKE)
    score: int = zxcvbn(judged, user_inputs=[name for name in names if name])["score"]
    return score
