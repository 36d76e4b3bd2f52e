"""Request ids: in each response (X-Request-ID), in each log line of the request, and in error messages."""

import re
from collections.abc import Callable, Mapping
from typing import Any

from pyramid.config import Configurator
from pyramid.registry import Registry
from pyramid.request import Request
from pyramid.response import Response
from pyramid.tweens import INGRESS

from identity.crypto.secrets import new_id
from identity.http.environ_keys import PEER_KEY, TRACE_ID_KEY
from identity.log_formatters import log_context
from identity.settings import NO_PROXY

REQUEST_ID_HEADER = "X-Request-ID"
#: Environ key.
REQUEST_ID_KEY = "identity.request_id"
_HEADER_KEY = "HTTP_X_REQUEST_ID"
_WELL_FORMED = re.compile(r"[A-Za-z0-9._:-]{8,64}", re.ASCII)


def environ_request_id(environ: dict[str, Any], trusted_proxy: str) -> str:
    """The id of the request, the same in each retry."""
    request_id: str | None = environ.get(REQUEST_ID_KEY)
    if request_id is None:
        request_id = environ[REQUEST_ID_KEY] = choose_request_id(
            environ.get(_HEADER_KEY, ""), environ.get(PEER_KEY, ""), trusted_proxy
        )
    return request_id


def choose_request_id(proposed: str, peer: str, trusted_proxy: str) -> str:
    """The id that the trusted proxy sent, if it has a valid form, else a new one."""
    trusted = trusted_proxy not in ("", NO_PROXY) and peer == trusted_proxy
    return proposed if proposed and trusted and _WELL_FORMED.fullmatch(proposed) else new_id()


def request_id_tween_factory(
    handler: Callable[[Request], Response], _registry: Registry
) -> Callable[[Request], Response]:
    """The outermost tween."""

    def with_id(request: Request) -> Response:
        before = log_context.set(lambda: request_log_context(request.request_id, request.environ.get(TRACE_ID_KEY)))
        try:
            response = handler(request)
        finally:
            log_context.reset(before)
        response.headerlist.append((REQUEST_ID_HEADER, request.request_id))
        return response

    return with_id


def request_log_context(request_id: str, trace_id: str | None) -> Mapping[str, str]:
    """Members of each log line written during the request."""
    members = {"request_id": request_id}
    return members if trace_id is None else {**members, "trace_id": trace_id}


def includeme(config: Configurator) -> None:
    config.add_tween("identity.http.request_ids.request_id_tween_factory", under=INGRESS)
