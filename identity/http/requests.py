"""IdentityRequest: what a request carries besides what Pyramid gives it."""

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING, TypeVar

from pyramid.config import Configurator
from pyramid.request import Request

from identity.domain.audit import Actor, ActorKind
from identity.domain.sessions import SignedIn
from identity.http.cookies import browser_of
from identity.http.locale import language_of
from identity.http.request_ids import request_id
from identity.lazily import lazily
from identity.provider.request import Browser
from identity.services.bundle import Services
from identity.services.unit_of_work import UnitOfWork
from identity.storage.backend import Storage

if TYPE_CHECKING:
    from transaction.interfaces import ITransactionManager

    from identity.process import Identity


Result = TypeVar("Result")

#: Results of ``once``, in the environ, which a request shares with its retries.
_DONE = "identity.done"
#: The digests of idempotency keys that this request has claimed and committed; in the environ too.
_CLAIMED = "identity.claimed"

_METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})
#: As OpenTelemetry's conventions call it.
_OTHER_METHOD = "_OTHER"


class IdentityRequest(Request):  # type: ignore[misc]
    """Each attribute is made when first asked for.

    They stand in a class of our own because Pyramid would otherwise make a new class for every single request, which
    costs more than the whole of its routing.
    """

    @lazily
    def request_id(self) -> str:
        """The id of this request, shown in its answer, in logs and audit events, and where it fails."""
        identity: Identity = self.registry.identity
        return request_id(self.environ, identity.settings.trusted_proxy)

    @lazily
    def tm(self) -> "ITransactionManager":
        """The process's transaction manager; it keeps one transaction per thread. Asked for by pyramid_tm."""
        identity: Identity = self.registry.identity
        return identity.transactions

    @lazily
    def browser(self) -> Browser:
        """What the browser shows of itself: secrets of its sessions and of the sign-ins it began."""
        return browser_of(self)

    @lazily
    def account(self) -> SignedIn | None:
        """Who is signed in here, for the service's own pages: of several the one selected last."""
        found: SignedIn | None = self.services.sessions.current(self.browser.sessions.values())
        return found

    @property
    def form_secret(self) -> str | None:
        """The secret that forms of this page are bound to: its sign-in's, else the session's; None for neither."""
        waiting = (self.matchdict or {}).get("request")
        if waiting is not None:
            return self.browser.sign_ins.get(waiting)
        return None if self.account is None else self.browser.sessions.get(self.account.session.id)

    @property
    def known_method(self) -> str:
        """The method, for logs and traces; any that no view has is one and the same."""
        method: str = self.method
        return method if method in _METHODS else _OTHER_METHOD

    def commit(self) -> None:
        """Commit what was done so far, and go on in another transaction; who acts and what was refused stays.

        For effects that must stand whatever comes, and before work that takes long.
        """
        claimed = self.services.idempotency.claimed_keys
        self._go_on_after(self.tm.commit)
        self.environ.setdefault(_CLAIMED, set()).update(claimed)

    def once(self, name: str, step: Callable[[], Result]) -> Result:
        """The result of ``step``, whose effects are committed.

        Where the database makes the whole request run again (pyramid_retry), a step that was committed is not repeated:
        the retry gets its result, which therefore must not hold anything of one run, such as ``services``. Within one
        run every call does its step, also under a name that was used before. Raises what the step raises; then nothing
        is committed.
        """
        number = self._steps[name] = self._steps.get(name, 0) + 1
        done: dict[tuple[str, int], Result] = self.environ.setdefault(_DONE, {})
        if (name, number) not in done:
            result = step()
            self.commit()
            done[name, number] = result
        return done[name, number]

    @lazily
    def _steps(self) -> dict[str, int]:
        """How many steps of each name this run of the request has reached."""
        return {}

    def roll_back(self) -> None:
        """Drop what was done since the last commit, and go on in another transaction, as after it."""
        self._go_on_after(self.tm.abort)

    def _go_on_after(self, end: Callable[[], None]) -> None:
        before = self.services
        try:
            end()
        finally:
            # Also for the answer that tells of a failure: pyramid_tm ends what it began.
            self.tm.begin()
        del self.__dict__["services"]
        # It may have kept to what stood there before.
        self.__dict__.pop("_looked_in", None)
        self.services.audit.actor = before.audit.actor
        self.services.audit.refused.extend(before.audit.refused)
        self.services.idempotency.claimed = before.idempotency.claimed

    @lazily
    def services(self) -> Services:
        """The use cases, in the request's transaction if it has one, on a read connection otherwise."""
        identity: Identity = self.registry.identity
        if "tm.active" not in self.environ:
            return identity.services(self._reading, self._actor)
        made = identity.services(self._writing, self._actor, look=self._looking)
        made.on_first_effect = lambda: self._act_after_commit(made)
        made.tell_language = lambda: language_of(self)
        if _CLAIMED in self.environ:
            made.idempotency.own_keys = self.environ[_CLAIMED]
        return made

    def begin_lagging(self) -> bool:
        """Have the services read from a storage that may be behind until ``end_lagging``; False if there is none."""
        identity: Identity = self.registry.identity
        opened = identity.backend.lagging()
        if opened is None:
            return False
        self.services = identity.lagging_services(opened.__enter__(), self._actor)
        self._lagging = opened
        self.add_finished_callback(IdentityRequest.end_lagging)
        return True

    def end_lagging(self) -> None:
        """Have other services read what is so now."""
        opened = self.__dict__.pop("_lagging", None)
        if opened is not None:
            self.forget()
            opened.__exit__(None, None, None)

    def forget(self) -> None:
        """Let go of the services.

        They and the request name each other. Until somebody looked for such circles, what a hundred requests have used
        would lie in memory, and the next one use other places.
        """
        services: UnitOfWork | None = self.__dict__.pop("services", None)
        if services is not None:
            services.forget()

    def _actor(self) -> Actor:
        """Whoever asks, as long as nobody has proved to be somebody."""
        address = self.environ.get("REMOTE_ADDR")
        return Actor(kind=ActorKind.ANONYMOUS, client_address=address, request_id=self.request_id)

    def _writing(self) -> Storage:
        identity: Identity = self.registry.identity
        return identity.backend.writing(identity.transactions)

    def _looking(self) -> AbstractContextManager[Storage]:
        """The storage in which the request looks things up before it writes: one connection for all of them."""
        return nullcontext(self._looked_in)

    @lazily
    def _looked_in(self) -> Storage:
        return self._reading()

    def _reading(self) -> Storage:
        """A read connection that goes back when the request is finished."""
        opened = self.registry.identity.backend.reading()
        storage: Storage = opened.__enter__()
        self.add_finished_callback(lambda _: opened.__exit__(None, None, None))
        return storage

    def _act_after_commit(self, services: UnitOfWork) -> None:
        def act(committed: bool) -> None:
            if committed:
                self.registry.identity.committed(services)

        self.tm.get().addAfterCommitHook(act)


def includeme(config: Configurator) -> None:
    """Have Pyramid make requests of this class."""
    config.set_request_factory(IdentityRequest)
