"""Requests to protocol endpoints, without Pyramid: each has a transaction of its own, and is repeated if that loses."""

import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from time import perf_counter
from typing import TYPE_CHECKING, Any

from pyramid.interfaces import IRoutesMapper
from pyramid.registry import Registry
from transaction.interfaces import TransientError

from identity.asgi.heads import Head
from identity.asgi.messages import Answer
from identity.asgi.pages import wsgi_environ
from identity.domain.audit import Actor, ActorKind
from identity.fair_shares import ask_from
from identity.http.cookies import read_browser
from identity.http.environ import OUTCOME
from identity.http.errors import DAMAGED, log_unavailable
from identity.http.locale import choose, in_query
from identity.http.observers import ObservedRequest, known_method, observed
from identity.http.protocol import EndpointHandler, Outcome, content_type_of, too_large
from identity.http.request_ids import HEADER, log_members
from identity.http.request_log import log as request_log
from identity.http.request_log import log_request
from identity.http.request_services import RequestServices, with_user_agent
from identity.http.routes import known_hosts
from identity.http.shares import network_of
from identity.http.transactions import ATTEMPTS
from identity.lazily import lazily
from identity.log_format import about
from identity.provider.answers import refusal
from identity.provider.context import Context
from identity.provider.endpoint import Host
from identity.provider.errors import OAuthError, TemporarilyUnavailable
from identity.provider.request import NO_BROWSER, Browser, ProtocolRequest, ProtocolResponse
from identity.storage.errors import Unavailable
from identity.transactions import Transactions

if TYPE_CHECKING:
    from identity.process import Identity

log = logging.getLogger(__name__)

_UNAVAILABLE = (Unavailable, *DAMAGED)


@dataclass(frozen=True, slots=True)
class Place:
    """Where an endpoint is. ``match`` returns what the path names, or None."""

    handler: EndpointHandler
    hosts: frozenset[str]
    route_name: str
    pattern: str
    match: Callable[[str], Mapping[str, str] | None]


class Places:
    """All endpoints by their addresses, as Pyramid's routes have them."""

    def __init__(self, registry: Registry) -> None:
        hosts = known_hosts(registry.identity.settings)
        mapper = registry.queryUtility(IRoutesMapper)
        self._plain: dict[str, list[Place]] = {}
        self._named: list[tuple[str, Place]] = []
        for name, handler in registry.endpoint_handlers.items():
            route, endpoint = mapper.get_route(name), handler.endpoint
            start, names, _ = endpoint.path.partition("{")
            place = Place(handler, hosts[endpoint.host], name, route.pattern, route.match)
            if names:
                self._named.append((start, place))
            else:
                self._plain.setdefault(endpoint.path, []).append(place)

    def find(self, head: Head) -> tuple[Place, str | None] | None:
        """The endpoint's place, and the id of the authorization request in its path, if there is one."""
        host = head.headers.get("host", "")
        for place in self._plain.get(head.path, ()):
            if host in place.hosts or host.lower() in place.hosts:
                return place, None
        for start, place in self._named:
            if head.path.startswith(start) and (host in place.hosts or host.lower() in place.hosts):
                try:
                    found = place.match(head.path.encode("latin-1").decode("utf-8"))
                except UnicodeDecodeError:
                    return None
                if found is not None:
                    return place, found.get("request")
        return None


class _Lost(Exception):
    """The transaction lost against another; the request is repeated."""


class EndpointCall:
    """A request to an endpoint. Called in a greenlet or a thread, with context variables of its own."""

    def __init__(
        self,
        identity: "Identity",
        observers: tuple[Any, ...],
        place: Place,
        resumed: str | None,
        head: Head,
        request_id: str,
        draw: Callable[[dict[str, Any]], Answer],
    ) -> None:
        self._identity = identity
        self._observers = observers
        self._place = place
        self._resumed = resumed
        self._head = head
        self._request_id = request_id
        self._draw = draw
        self._claimed: set[Any] = set()
        self._trace_id: str | None = None
        #: None for one over the limit, which was not read.
        self.body: bytes | None = b""

    def __call__(self) -> Answer:
        """Its answer."""
        identity, started = self._identity, perf_counter()
        about.set(lambda: log_members(self._request_id, self._trace_id))
        ask_from(network_of(self._head.client, identity.settings.trusted_proxy))
        writes = self._place.handler.endpoint.writes
        left = ATTEMPTS if writes and identity.backend.contends else 1
        attempt = self._observed_attempt if self._observers else self._attempt
        while True:
            left -= 1
            try:
                answer = attempt(may_repeat=left > 0)
                break
            except _Lost:
                continue
        answer.headers.append((HEADER, self._request_id))
        if request_log.isEnabledFor(logging.INFO):
            seconds = perf_counter() - started
            log_request(known_method(self._head.method), self._place.pattern, answer.status, seconds)
        identity.worker.wake()
        return answer

    def _observed_attempt(self, *, may_repeat: bool) -> Answer:
        seen = ObservedRequest(
            method=known_method(self._head.method),
            peer=self._head.peer,
            request_id=self._request_id,
            header=self._head.headers.get,
            route_name=self._place.route_name,
            route_pattern=self._place.pattern,
        )
        with observed(self._observers, seen):
            self._trace_id = seen.trace_id
            try:
                answer = self._attempt(may_repeat=may_repeat, seen=seen)
            except _Lost:
                seen.is_final = False
                raise
            seen.status = answer.status
            return answer

    def _attempt(self, *, may_repeat: bool, seen: ObservedRequest | None = None) -> Answer:
        transactions = Transactions() if self._place.handler.endpoint.writes else None
        opened = self._opened(transactions)
        answer: Answer | None = None
        result: ProtocolResponse | Exception
        try:
            try:
                if transactions is not None:
                    transactions.begin()
                try:
                    result = self._response(opened)
                except Exception as error:
                    if may_repeat and isinstance(error, TransientError):
                        raise
                    result = error
                answer = self._answer(result, opened)
                # A response, or an error that says so, leaves what the transaction holds.
                if transactions is not None and getattr(result, "keep_changes", not isinstance(result, Exception)):
                    transactions.commit()
                    transactions = None
            except Exception as error:
                if may_repeat and isinstance(error, TransientError):
                    raise _Lost from error
                answer, result = None, error
            finally:
                if transactions is not None:
                    try:
                        _abort(transactions)
                    except Exception as error:
                        # What the response rests on has not come to be.
                        answer, result = None, error
            refused = opened.refused
        finally:
            opened.close()
        if seen is not None:
            seen.note_context(opened.context)
            seen.error = type(result) if isinstance(result, Exception) else None
        if answer is None:
            answer = self._other_answer(result, opened.context)
        if refused:
            agent = self._browser.user_agent
            self._identity.write_refusals([with_user_agent(event, agent) for event in refused])
        return answer

    def _response(self, opened: RequestServices) -> ProtocolResponse:
        handler, headers = self._place.handler, self._head.headers
        if handler.is_preflight(self._head.method, headers.get("access-control-request-method")):
            return handler.preflight()
        handler.check_method(self._head.method)
        if self.body is None:
            raise too_large()
        request = ProtocolRequest(
            method=self._head.method,
            query=self._head.query.encode("latin-1"),
            body=self.body,
            content_type=content_type_of(headers.get("content-type", "")),
            authorization=headers.get("authorization"),
            if_none_match=headers.get("if-none-match"),
            browser=self._browser if handler.has_browser else NO_BROWSER,
            resumed=self._resumed,
        )
        return handler.answer(request, opened)

    def _answer(self, result: ProtocolResponse | Exception, opened: RequestServices) -> Answer | None:
        """None if Pyramid has to draw it."""
        response = self._refusal(result, opened) if isinstance(result, Exception) else result
        if response is None or response.form_post is not None:
            return None
        headers = self._place.handler.headers(response, self._head.headers.get("origin"), opened, lambda: self._browser)
        return Answer(response.status, headers, response.body)

    def _refusal(self, error: Exception, opened: RequestServices) -> ProtocolResponse | None:
        """What a program is answered; None for errors of other kinds, and where people are answered."""
        is_for_people = self._place.handler.endpoint.host is Host.LOGIN
        if is_for_people or (opened.context is not None and opened.context.waiting):
            return None
        if isinstance(error, OAuthError):
            return refusal(error)
        if isinstance(error, _UNAVAILABLE):
            log_unavailable(error, self._request_id)
            return refusal(TemporarilyUnavailable("try again in a few seconds"))
        return None

    def _other_answer(self, result: ProtocolResponse | Exception, context: Context | None) -> Answer:
        """The answer after the end of the transaction: that it could not be committed, or a page that Pyramid draws."""
        if isinstance(result, Exception):
            reading = self._opened(None)
            reading.context = context
            try:
                answer = self._answer(result, reading)
            finally:
                reading.close()
            if answer is not None:
                return answer
        environ = wsgi_environ(self._head, self._request_id)
        environ[OUTCOME] = Outcome(result, context)
        drawn = self._draw(environ)
        return Answer(drawn.status, [one for one in drawn.headers if one[0] != HEADER], drawn.body)

    def _opened(self, transactions: Transactions | None) -> RequestServices:
        return RequestServices(self._identity, self._actor, self._language, transactions, self._claimed)

    def _actor(self) -> Actor:
        return Actor(kind=ActorKind.ANONYMOUS, client_address=self._head.client, request_id=self._request_id)

    def _language(self) -> str:
        return choose(in_query(self._head.query), accept_language=self._head.headers.get("accept-language", ""))

    @lazily
    def _browser(self) -> Browser:
        headers = self._head.headers
        agent = headers.get("user-agent", "").encode("latin-1")
        return read_browser(self._identity.settings, agent, headers.get("cookie", ""))


def _abort(transactions: Transactions) -> None:
    """End it, unless a failed commit or begin has."""
    if transactions.is_active:
        transactions.abort()
