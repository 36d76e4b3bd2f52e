from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest

from identity.application import IdentityApplication
from identity.application_factory import create_application
from identity.services.container import Services
from identity.testing.assembled_service import _CheapCost
from identity.testing.clock import FakeClock


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock(datetime(2026, 11, 21, 12, tzinfo=UTC))


@pytest.fixture
def plugins() -> str:
    """The plugins besides the storage."""
    return "jwt_bearer oidc_scopes project_audience manager_roles"


@pytest.fixture
def further() -> dict[str, str]:
    return {}


@pytest.fixture
def identity(tmp_path: Path, clock: FakeClock, plugins: str, further: dict[str, str]) -> Iterator[IdentityApplication]:
    """An assembled service with empty in-memory storage."""
    settings = {
        "identity.issuer_url": "https://id.example.com",
        "identity.storage": "memory",
        "identity.plugins": f"memory {plugins}",
        "identity.development": "true",
        "identity.data": str(tmp_path),
    }
    app = create_application(settings | further, clock=clock)
    app.process_state.hasher.cost = _CheapCost.from_cost(app.process_state.hasher.cost)
    yield app
    app.close()


@pytest.fixture
def services(identity: IdentityApplication) -> Iterator[Services]:
    """Services in a transaction."""
    with identity.transaction() as services:
        yield services
