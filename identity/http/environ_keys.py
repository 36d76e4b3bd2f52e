"""Keys of a WSGI environment that the ASGI application fills in for Pyramid."""

#: The address of the other end of the connection, be it a proxy.
PEER_KEY = "identity.peer"
#: Present if the request came with a proxy's headers, which may have been dropped since.
FORWARDED_KEY = "identity.forwarded"
#: Present if the body is not read yet, since it is longer than forms are. A view sets it to the number of bytes that it
#: takes, and raises BodyNotBuffered; it is called again with the body.
UNREAD_BODY_KEY = "identity.unread_body"
#: What a protocol endpoint has come to before, for a page to be drawn of it
#: (``identity.http.endpoint_handler.EndpointResult``).
ENDPOINT_RESULT_KEY = "identity.outcome"
#: The id of the trace that the request belongs to, if it is traced.
TRACE_ID_KEY = "identity.trace_id"
