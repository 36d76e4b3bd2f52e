"""The fixture ``identity_issuer``: tests of an application need no service. pytest loads it by an entry point."""

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from identity_client.testing import TestIssuer


@pytest.fixture
def identity_issuer(monkeypatch: pytest.MonkeyPatch) -> "TestIssuer":
    """Answers all clients during the test. Set its ``url`` to the issuer that the application is configured with."""
    # Imported late: pytest loads this module in each run, also of tests that do not use it.
    import httpx

    from identity_client.client import AsyncIdentityClient, IdentityClient
    from identity_client.testing import TestIssuer

    issuer = TestIssuer()

    async def send(_: AsyncIdentityClient, request: httpx.Request) -> httpx.Response:
        return issuer.respond(request)

    monkeypatch.setattr(IdentityClient, "send", lambda _, request: issuer.respond(request))
    monkeypatch.setattr(AsyncIdentityClient, "send", send)
    return issuer
