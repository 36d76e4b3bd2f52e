"""Pending sign-ins: authorization requests that wait for their user, bound to one browser."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import timedelta

from identity.crypto.secrets import constant_time_equal, new_id, new_token, token_digest
from identity.domain.authentication import Proof
from identity.domain.errors import Conflict, DomainError
from identity.domain.sessions import PendingAuthorization, SignedInAccount
from identity.domain.users import Subject
from identity.services.base import Service
from identity.storage.errors import AlreadyUsed, RowNotFound, StaleRow

_TRIES = 3

#: Steps that do not depend on who the person is: choosing another account keeps them.
_BEFORE_LOGIN = frozenset(
    {"create", "select_account", PendingAuthorization.STRONGEST_PROOF_STEP, PendingAuthorization.OTHER_METHOD_STEP}
)

_OTHER_WINDOW_MESSAGE = "This sign-in goes on in another window."

_Change = Callable[[PendingAuthorization], PendingAuthorization]


class SignInUnavailable(DomainError):
    """No pending sign-in with this id can continue in this browser; ``state`` says why not. An UNKNOWN one may have
    been purged, a FOREIGN one was started in another browser, a FINISHED one was answered. An EXPIRED one can be
    restarted: it is ``pending``."""

    UNKNOWN, FOREIGN, EXPIRED, FINISHED = (
        "We do not know this sign-in.",
        "This sign-in was started in another browser.",
        "This sign-in took too long.",
        "This sign-in is done.",
    )

    def __init__(self, state: str, pending: PendingAuthorization | None = None) -> None:
        super().__init__(state)
        self.state = state
        self.pending = pending


class StaleSignIn(SignInUnavailable):
    """The request has changed since it was read: decide the next step again."""


class SignInService(Service):
    """Each change applies to the newest version, so that two tabs of one sign-in do not conflict."""

    @property
    def lifetime(self) -> timedelta:
        """Time until a pending sign-in expires."""
        return self._settings.sign_in_lifetime

    def begin(
        self,
        parameters: Mapping[str, str],
        *,
        target: str | None = None,
        login_name: str = "",
        ui_locales: str = "",
    ) -> tuple[PendingAuthorization, str]:
        """Start one; returns it with the secret that its browser presents."""
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
        """The pending sign-in with this id, for the browser that presents its secret. Raises SignInUnavailable."""
        with self._look() as storage:
            pending = storage.authorization_requests.find(request_id)
        if pending is None:
            raise SignInUnavailable(SignInUnavailable.UNKNOWN)
        if secret is None or not constant_time_equal(token_digest(secret), pending.digest):
            raise SignInUnavailable(SignInUnavailable.FOREIGN)
        if pending.finished_at is not None:
            raise SignInUnavailable(SignInUnavailable.FINISHED)
        if pending.is_expired(self._now):
            raise SignInUnavailable(SignInUnavailable.EXPIRED, pending)
        return pending

    def restart(self, request_id: str, secret: str | None) -> tuple[PendingAuthorization, str]:
        """A new one with the same parameters as one that expired. Raises SignInUnavailable, unless it is expired."""
        try:
            old = self.find(request_id, secret)
        except SignInUnavailable as refused:
            if refused.pending is None:
                raise
            old = refused.pending
        return self.begin(old.parameters, target=old.target, login_name=old.login_name, ui_locales=old.ui_locales)

    def set_login_name(self, pending: PendingAuthorization, login_name: str) -> PendingAuthorization:
        return self._update(pending, lambda pending: replace(pending, login_name=login_name))

    def choose_other_method(self, pending: PendingAuthorization) -> PendingAuthorization:
        """Stop redirecting to a provider, and offer the instance's sign-in methods."""
        return self._update(
            pending, lambda pending: replace(pending, done=pending.done | {PendingAuthorization.OTHER_METHOD_STEP})
        )

    def set_language(self, pending: PendingAuthorization, ui_locales: str) -> PendingAuthorization:
        return self._update(pending, lambda pending: replace(pending, ui_locales=ui_locales))

    def select_account(self, pending: PendingAuthorization, account: SignedInAccount | None) -> PendingAuthorization:
        """Set the account that answers the request; None for one that has yet to sign in. Earlier proofs no longer
        count: they may be someone else's."""
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
        """Require a new proof, as strong as the person can give, despite existing sessions and proofs."""
        return self._update(
            pending,
            lambda pending: replace(
                pending.restarted(),
                login_name="",
                done=(pending.done & _BEFORE_LOGIN) | {"select_account", PendingAuthorization.STRONGEST_PROOF_STEP},
            ),
        )

    def add_proof(
        self,
        pending: PendingAuthorization,
        subject: Subject,
        methods: tuple[str, ...],
        *,
        factor: str = Proof.PASSWORD_FACTOR,
    ) -> PendingAuthorization:
        """Record who was authenticated just now, by which factor and methods (amr, RFC 8176). The session starts when
        no further interaction is needed. Interactions finished after an earlier proof have to be finished again."""
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
        """Record a finished interaction and its further methods (amr, RFC 8176). Without a factor, the interaction
        itself is the factor. What the user of a session has finished counts only for that ``account``, even if it
        was the only one. Raises Conflict if the sign-in has another user by now, or none."""
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
        """Finish it in the transaction that answers it: one of several concurrent tabs succeeds. Raises
        SignInUnavailable if it is finished; StaleSignIn if it has changed since it was read."""
        try:
            self._storage.authorization_requests.finish(pending.id, self._now, version=pending.version)
        except (AlreadyUsed, RowNotFound):
            raise SignInUnavailable(SignInUnavailable.FINISHED) from None
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
                    raise SignInUnavailable(SignInUnavailable.FINISHED) from None
                pending = newer
            except RowNotFound:
                raise SignInUnavailable(SignInUnavailable.UNKNOWN) from None
            else:
                return after
        raise Conflict(_OTHER_WINDOW_MESSAGE)
