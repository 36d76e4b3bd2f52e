"""Sign-ins under way: authorization requests that wait for their user, bound to one browser."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import timedelta

from identity.crypto.secrets import constant_time_equal, new_id, new_token, token_digest
from identity.domain.authentication import PASSWORD_FACTOR, Proof
from identity.domain.errors import Conflict, DomainError
from identity.domain.sessions import PendingAuthorization, SignedInAccount
from identity.domain.users import Subject
from identity.services.base import Service, TransactionState
from identity.settings import Settings
from identity.storage.errors import AlreadyUsed, RowNotFound, StaleRow

_TRIES = 3

#: What is noted as done where who they are is to be proved as well as they can, and the demand of our own pages for it.
STRONGEST_PROOF_STEP = "strongest"

#: What is noted as done once they want none of the ways to which they are sent: the instance's are shown.
OTHER_METHOD_STEP = "another_way"

#: What is not about who somebody is: choosing somebody else does not undo it.
_BEFORE_LOGIN = frozenset({"create", "select_account", STRONGEST_PROOF_STEP, OTHER_METHOD_STEP})

_OTHER_WINDOW_MESSAGE = "This sign-in goes on in another window."

_Change = Callable[[PendingAuthorization], PendingAuthorization]


class SignInUnavailable(DomainError):
    """There is no such sign-in that could go on in this browser."""


class UnknownSignIn(SignInUnavailable):
    """No request has this id, or it is long gone."""


class ForeignSignIn(SignInUnavailable):
    """The request was begun in another browser."""


class ExpiredSignIn(SignInUnavailable):
    """The request waited for too long; ``pending`` can be started again."""

    def __init__(self, pending: PendingAuthorization) -> None:
        super().__init__("This sign-in took too long.")
        self.pending = pending


class FinishedSignIn(SignInUnavailable):
    """The request has had its answer."""


class StaleSignIn(DomainError):
    """The request is not as it was when it was looked at: what comes next has to be decided anew."""


class SignInService(Service):
    """Each change is made to the newest version: two tabs at one sign-in do not get into each other's way."""

    def __init__(self, state: TransactionState, settings: Settings) -> None:
        super().__init__(state)
        self._settings = settings

    @property
    def lifetime(self) -> timedelta:
        """How long a sign-in may take."""
        return self._settings.sign_in_lifetime

    def begin(
        self,
        parameters: Mapping[str, str],
        *,
        target: str | None = None,
        login_name: str = "",
        ui_locales: str = "",
    ) -> tuple[PendingAuthorization, str]:
        """A new one, and the secret that its browser shows."""
        secret = new_token()
        pending = PendingAuthorization(
            id=new_id(),
            digest=token_digest(secret),
            created_at=self._now,
            expires_at=self._now + self.lifetime,
            parameters=dict(parameters),
            target=target,
            login_name=login_name,
            ui_locales=ui_locales,
        )
        self._storage.authorization_requests.add(pending)
        return pending, secret

    def find(self, request_id: str, secret: str | None) -> PendingAuthorization:
        """The one with this id, for the browser that shows its secret.

        Raises UnknownSignIn, ForeignSignIn, ExpiredSignIn, FinishedSignIn.
        """
        with self._look() as storage:
            pending = storage.authorization_requests.find(request_id)
        if pending is None:
            raise UnknownSignIn("We do not know this sign-in.")
        if secret is None or not constant_time_equal(token_digest(secret), pending.digest):
            raise ForeignSignIn("This sign-in was started in another browser.")
        if pending.finished_at is not None:
            raise FinishedSignIn("This sign-in is done.")
        if pending.is_expired(self._now):
            raise ExpiredSignIn(pending)
        return pending

    def restart(self, request_id: str, secret: str | None) -> tuple[PendingAuthorization, str]:
        """A new one with the same parameters as one that expired.

        Raises UnknownSignIn, ForeignSignIn, FinishedSignIn.
        """
        try:
            old = self.find(request_id, secret)
        except ExpiredSignIn as expired:
            old = expired.pending
        return self.begin(old.parameters, target=old.target, login_name=old.login_name, ui_locales=old.ui_locales)

    def set_login_name(self, pending: PendingAuthorization, login_name: str) -> PendingAuthorization:
        """Keep what was typed as login name."""
        return self._update(pending, lambda pending: replace(pending, login_name=login_name))

    def choose_other_method(self, pending: PendingAuthorization) -> PendingAuthorization:
        """Send them nowhere from now on, and let them choose among the ways of the instance."""
        return self._update(pending, lambda pending: replace(pending, done=pending.done | {OTHER_METHOD_STEP}))

    def set_language(self, pending: PendingAuthorization, ui_locales: str) -> PendingAuthorization:
        """Keep the language that was chosen."""
        return self._update(pending, lambda pending: replace(pending, ui_locales=ui_locales))

    def select_account(self, pending: PendingAuthorization, account: SignedInAccount | None) -> PendingAuthorization:
        """Note the account that is to answer; None for one that has yet to sign in.

        What somebody has proved before counts no longer: it may have been somebody else.
        """
        return self._update(
            pending,
            lambda pending: replace(
                pending.restarted(),
                session_id=None if account is None else account.session.id,
                login_name="" if account is None else account.subject.login_name,
                done=(pending.done & _BEFORE_LOGIN) | {"select_account"},
            ),
        )

    def require_reauthentication(self, pending: PendingAuthorization) -> PendingAuthorization:
        """Have them prove who they are, as well as they can, whoever is signed in at this browser or has proved it."""
        return self._update(
            pending,
            lambda pending: replace(
                pending.restarted(),
                login_name="",
                done=(pending.done & _BEFORE_LOGIN) | {"select_account", STRONGEST_PROOF_STEP},
            ),
        )

    def add_proof(
        self,
        pending: PendingAuthorization,
        subject: Subject,
        methods: tuple[str, ...],
        *,
        factor: str = PASSWORD_FACTOR,
    ) -> PendingAuthorization:
        """Note who proved to be who, just now, by which factor and methods (RFC 8176); the session starts when nothing
        else is asked.

        Whatever was finished after an earlier proof has to be finished again.
        """
        return self._update(
            pending,
            lambda pending: replace(
                pending.restarted(),
                user_id=subject.user.id,
                authenticated_at=self._now,
                proofs=(Proof(factor, methods, self._now),),
                login_name=subject.login_name,
                done=(pending.done & _BEFORE_LOGIN) | {"login"},
            ),
        )

    def complete_interaction(
        self,
        pending: PendingAuthorization,
        interaction: str,
        *,
        account: SignedInAccount | None = None,
        methods: tuple[str, ...] = (),
        factor: str = "",
    ) -> PendingAuthorization:
        """Note that an interaction is finished, and by which further methods (RFC 8176) the person has proved to be it;
        the interaction itself is the factor where no other is named.

        What the person of a session has finished counts for that ``account`` alone, also where it was the only one.
        Raises Conflict if it is another person's sign-in by now, or nobody's.
        """
        session_id = pending.session_id if account is None else account.session.id

        def finished(waiting: PendingAuthorization) -> PendingAuthorization:
            if waiting.authentication_state != pending.authentication_state:
                raise Conflict(_OTHER_WINDOW_MESSAGE)
            further = (Proof(factor or interaction, methods, self._now),) if methods or factor else ()
            return replace(
                waiting, session_id=session_id, done=waiting.done | {interaction}, proofs=(*waiting.proofs, *further)
            )

        return self._update(pending, finished)

    def finish(self, pending: PendingAuthorization) -> None:
        """End it, in the transaction that makes its answer: of racing tabs one gets it.

        Raises FinishedSignIn; StaleSignIn, so that nothing is answered by what was true before.
        """
        try:
            self._storage.authorization_requests.finish(pending.id, self._now, version=pending.version)
        except (AlreadyUsed, RowNotFound):
            raise FinishedSignIn("This sign-in is done.") from None
        except StaleRow:
            raise StaleSignIn("This sign-in went on in another window.") from None

    def _update(self, pending: PendingAuthorization, change: _Change) -> PendingAuthorization:
        for _ in range(_TRIES):
            after = replace(change(pending), version=pending.version + 1)
            try:
                self._storage.authorization_requests.update(after)
            except StaleRow:
                newer = self._storage.authorization_requests.find(pending.id)
                if newer is None or newer.finished_at is not None:
                    raise FinishedSignIn("This sign-in is done.") from None
                pending = newer
            except RowNotFound:
                raise UnknownSignIn("We do not know this sign-in.") from None
            else:
                return after
        raise Conflict(_OTHER_WINDOW_MESSAGE)
