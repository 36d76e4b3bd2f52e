from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest

from identity.app import assemble
from identity.process import Identity
from identity.services.bundle import Services
from identity.testing.clock import MovableClock
from identity.testing.service import _NextToNothing


@pytest.fixture
def clock() -> MovableClock:
    return MovableClock(datetime(2026, 11, 21, 12, tzinfo=UTC))


@pytest.fixture
def plugins() -> str:
    """What is listed beside the storage."""
    return "jwt_bearer oidc_scopes project_audience manager_roles"


@pytest.fixture
def further() -> dict[str, str]:
    """Other settings."""
    return {}


@pytest.fixture
def identity(tmp_path: Path, clock: MovableClock, plugins: str, further: dict[str, str]) -> Iterator[Identity]:
    """An assembled service on memory, empty."""
    settings = {
        "identity.issuer_url": "https://id.example.com",
        "identity.storage": "memory",
        "identity.plugins": f"memory {plugins}",
        "identity.development": "true",
        "identity.data": str(tmp_path),
    }
    made = assemble(settings | further, clock=clock)
    made.process.hasher.cost = _NextToNothing.of(made.process.hasher.cost)
    yield made
    made.close()


@pytest.fixture
def services(identity: Identity) -> Iterator[Services]:
    """Services inside one transaction."""
    with identity.transaction() as services:
        yield services
