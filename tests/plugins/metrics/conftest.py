"""A service with metrics, and a parser of the Prometheus text format."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from prometheus_client.parser import text_string_to_metric_families

from identity.testing.fixtures import WorldFactory
from identity.testing.world import World

TOKEN = "a-token-of-more-than-thirty-two-characters"


def make_token_file(folder: Path) -> Path:
    path = folder / "metrics.token"
    path.write_text(f"{TOKEN}\n")
    path.chmod(0o600)
    return path


class ReadMetrics:
    """The samples of one response."""

    def __init__(self, text: str) -> None:
        self.families = {family.name: family for family in text_string_to_metric_families(text)}
        self.samples = {
            (sample.name, tuple(sorted(sample.labels.items()))): sample.value
            for family in self.families.values()
            for sample in family.samples
        }

    @property
    def counted(self) -> set[tuple[str, tuple[tuple[str, str], ...]]]:
        """The samples other than zero."""
        return {item for item, value in self.samples.items() if value}

    def value(self, name: str, **labels: str) -> float:
        return self.samples.get((name, tuple(sorted(labels.items()))), 0)

    def labels(self, name: str, label: str) -> set[str]:
        return {dict(labels)[label] for item, labels in self.samples if item == name}


class MetricsService:
    """A world with metrics behind a token."""

    def __init__(self, world: World) -> None:
        self.world = world

    def ask(self, token: str | None = TOKEN, **headers: str) -> Any:
        sent = headers if token is None else {"Authorization": f"Bearer {token}", **headers}
        return self.world.client.app.get("/metrics", headers=sent, expect_errors=True)

    def scrape(self) -> ReadMetrics:
        answer = self.ask()
        assert answer.status_int == 200, answer
        return ReadMetrics(answer.text)


MakeWatched = Callable[..., MetricsService]


@pytest.fixture
def make_watched(make_world: WorldFactory, tmp_path: Path) -> Iterator[MakeWatched]:
    with ExitStack() as stack:

        def make(**settings: str) -> MetricsService:
            defaults = {
                "identity.plugin.metrics.token_file": str(make_token_file(tmp_path)),
                "identity.plugin.metrics.directory": str(tmp_path / "metrics"),
            }
            world = make_world(**defaults, **settings)
            assert world.app is not None
            stack.enter_context(world.identity.lifespan())
            return MetricsService(world)

        yield make


@pytest.fixture
def watched(make_watched: MakeWatched) -> MetricsService:
    return make_watched()
