"""Keys that the ASGI application sets in the WSGI environment for Pyramid, and headers that endpoints read there."""

from collections.abc import Mapping
from typing import Any

from identity.provider.protocol_request import ProtocolRequest

#: The address of the connection's peer, which may be a proxy.
PEER_KEY = "identity.peer"
#: Present if the request had a proxy's headers, which may have been removed since.
FORWARDED_KEY = "identity.forwarded"
#: Present if the body is not read yet because it exceeds the size of forms. A view sets it to the number of bytes that
#: it accepts and raises BodyNotBuffered; it is called again with the body.
UNREAD_BODY_KEY = "identity.unread_body"
#: The result of an endpoint that needs a page (``identity.http.endpoint_handler.EndpointResult``).
ENDPOINT_RESULT_KEY = "identity.outcome"
#: The id of the request's trace, if it is traced.
TRACE_ID_KEY = "identity.trace_id"


def passed_headers(environ: Mapping[str, Any]) -> dict[str, str]:
    """The headers that protocol requests have beside their own fields."""
    values = {name: environ.get(f"HTTP_{name.upper().replace('-', '_')}") for name in ProtocolRequest.PASSED_HEADERS}
    return {name: value for name, value in values.items() if value is not None}
