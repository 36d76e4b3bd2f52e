"""IdentityRequest: the request class with this service's attributes."""

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, TypeVar

from pyramid.config import Configurator
from pyramid.request import Request

from identity.cached_property import cached_property
from identity.domain.audit import Actor, ActorKind
from identity.domain.sessions import SignedInAccount
from identity.domain.users import Subject
from identity.http.cookies import read_request_browser_state
from identity.http.language_negotiation import RequestLanguage
from identity.http.request_ids import environ_request_id
from identity.http.request_services import RequestServices
from identity.provider.protocol_request import BrowserState
from identity.services.container import Services
from identity.transaction_manager import ExplicitTransactionManager

if TYPE_CHECKING:
    from transaction.interfaces import ITransactionManager

    from identity.application import IdentityApplication
    from identity.provider.errors import OAuthError


Result = TypeVar("Result")

#: Results of ``run_once``, in the environ, which a request shares with its retries.
_COMMITTED_RESULTS_KEY = "identity.done"
#: The digests of idempotency keys that this request has claimed and committed; in the environ, too.
_CLAIMED_KEYS_KEY = "identity.claimed"


class IdentityRequest(Request):  # type: ignore[misc]
    """Each attribute is computed on first access. A request class of our own: with request methods Pyramid would create
    a class for each request, which costs more than its routing."""

    #: Why the access token was refused, if its sender did not prove its key.
    token_error: "OAuthError | None" = None

    @cached_property
    def request_id(self) -> str:
        """The id of this request, in its response, in logs, audit events and error messages."""
        identity: IdentityApplication = self.registry.application
        return environ_request_id(self.environ, identity.settings.trusted_proxy)

    @cached_property
    def tm(self) -> "ITransactionManager":
        """The transaction manager of this attempt, as pyramid_tm expects it."""
        return ExplicitTransactionManager()

    @cached_property
    def browser_state(self) -> BrowserState:
        """The browser's state: secrets of its sessions and pending sign-ins."""
        return read_request_browser_state(self)

    @cached_property
    def signed_in_account(self) -> SignedInAccount | None:
        """The account that is signed in to the service's own pages: of several the one selected last."""
        account: SignedInAccount | None = self.services.sessions.find_current(self.browser_state.sessions.values())
        return account

    @cached_property
    def impersonator(self) -> Subject | None:
        """The manager who is signed in as the person of ``signed_in_account``; None if the person is."""
        account = self.signed_in_account
        return None if account is None else self.services.impersonations.find_impersonator(account)

    @property
    def form_secret(self) -> str | None:
        """The secret that forms of this page are bound to: the sign-in's, else the session's; None without either."""
        waiting = (self.matchdict or {}).get("request")
        if waiting is not None:
            return self.browser_state.sign_ins.get(waiting)
        if self.signed_in_account is None:
            return None
        return self.browser_state.sessions.get(self.signed_in_account.session.id)

    def commit(self) -> None:
        """Commit the transaction and begin another; actor and refusals stay. For effects that must persist, and before
        slow work."""
        self.request_services.commit()

    def run_once(self, name: str, step: Callable[[], Result]) -> Result:
        """Return the result of ``step``, whose effects are committed.

        If the database makes pyramid_retry run the request again, a committed step is not repeated: the retry gets
        its result, which therefore must not hold objects of one run, such as ``services``. Within one run every call
        executes its step, even under a name used before. Raises what the step raises; then nothing is committed."""
        number = self._call_counts[name] = self._call_counts.get(name, 0) + 1
        done: dict[tuple[str, int], Result] = self.environ.setdefault(_COMMITTED_RESULTS_KEY, {})
        if (name, number) not in done:
            result = step()
            self.commit()
            done[name, number] = result
        return done[name, number]

    @cached_property
    def _call_counts(self) -> dict[str, int]:
        """How many steps of each name this run of the request has reached."""
        return {}

    def roll_back(self) -> None:
        """Roll back to the last commit, and continue in another transaction."""
        self.request_services.roll_back()

    @cached_property
    def request_services(self) -> RequestServices:
        """The services of this run of the request, in its transaction if it has one."""
        identity: IdentityApplication = self.registry.application
        # By the time services are needed, it is known whether there is a transaction.
        transactions = self.tm if "tm.active" in self.environ else None
        claimed = self.environ.setdefault(_CLAIMED_KEYS_KEY, set())
        self.add_finished_callback(IdentityRequest._close)
        return RequestServices(identity, self._actor, partial(RequestLanguage.negotiate, self), transactions, claimed)

    def share_services(self, other: "IdentityRequest") -> None:
        """Use the services, the transaction and the committed results of another request, which closes them."""
        self.__dict__["request_services"] = other.request_services
        self.environ[_COMMITTED_RESULTS_KEY] = other.environ.setdefault(_COMMITTED_RESULTS_KEY, {})

    def _close(self) -> None:
        request_services: RequestServices = self.__dict__.pop("request_services")
        request_services.close()

    @property
    def services(self) -> Services:
        """Services in the request's transaction if it has one, on a read connection otherwise."""
        return self.request_services.services

    def _actor(self) -> Actor:
        """The anonymous actor, used until the request is authenticated."""
        address = self.environ.get("REMOTE_ADDR")
        return Actor(kind=ActorKind.ANONYMOUS, client_address=address, request_id=self.request_id)


def includeme(config: Configurator) -> None:
    config.set_request_factory(IdentityRequest)
