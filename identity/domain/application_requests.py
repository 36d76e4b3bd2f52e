"""The log of an application: its latest requests, without the values of parameters."""

from dataclasses import dataclass
from datetime import datetime

#: How many successful requests of an application are kept, and how many refused ones: neither displaces the other.
MAX_LOGGED_REQUESTS = 25


@dataclass(frozen=True, slots=True, kw_only=True)
class ApplicationRequest:
    """A request of an application. ``endpoint`` is the endpoint's name, or ``sign-in`` for an attempt on a page.
    ``error`` is the OAuth error code, empty for success; ``reason`` says what was wrong and contains nothing that was
    sent. ``client_network`` is the network that the request came from."""

    id: str
    application_id: str
    at: datetime
    endpoint: str
    grant_type: str = ""
    error: str = ""
    reason: str = ""
    user_id: str | None = None
    client_network: str = ""
