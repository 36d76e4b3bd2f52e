"""Security 10.4: no page or endpoint reveals to an anonymous client whether an account exists, or its state.

Add a request to ``anonymous_requests`` for a new page or endpoint; all sign-in pages share one.
"""

from collections.abc import Iterator
from difflib import ndiff

import pytest

from identity.testing.fixtures import WorldFactory
from identity.testing.world import World
from tests.house.test_routes import public_routes
from tests.spec.anonymous_requests import (
    ANONYMOUS_REQUESTS,
    TAKES_NOTHING,
    UNGUESSABLE,
    AccountCase,
    AnonymousScenario,
    Ask,
    NormalizedResponse,
    RequestCost,
    below,
    named,
    unsigned,
    work,
)

pytestmark = pytest.mark.storages("sqlite")

_PAGE = "/login/{request}"
MAIL = {"identity.smtp.host": "mail.example", "identity.smtp.sender": "no-reply@id.example.com"}


@pytest.fixture
def world(make_world: WorldFactory) -> World:
    """A service that can send mail; without mail, registration has to reveal that a name is taken."""
    return make_world(**MAIL)


def all_requests(world: World) -> Iterator[tuple[str, Ask]]:
    """Each public route that accepts input, with its request."""
    public = public_routes(world)
    for name, pattern in patterns(world).items():
        if name not in public or name in TAKES_NOTHING:
            continue
        if name in ANONYMOUS_REQUESTS:
            yield from ((name, ask) for ask in ANONYMOUS_REQUESTS[name])
        elif pattern.startswith(_PAGE):
            yield name, below(pattern.removeprefix(_PAGE))


def patterns(world: World) -> dict[str, str]:
    found = world.app.registry.introspector.get_category("routes")
    return {item["introspectable"]["name"]: item["introspectable"]["pattern"] for item in found}


def test_anonymous_requests_cover_all_routes(world: World) -> None:
    names, public = {name for name, _ in all_requests(world)}, public_routes(world)
    assert public - names - TAKES_NOTHING.keys() == set()
    assert not names & TAKES_NOTHING.keys()
    assert (ANONYMOUS_REQUESTS.keys() | TAKES_NOTHING.keys()) - public == set()


def difference(expected: list[NormalizedResponse], actual: list[NormalizedResponse]) -> str:
    lines = [
        "\n".join(map(str, (item for answer in answers for item in answer))).splitlines()
        for answers in (expected, actual)
    ]
    return "\n".join(item for item in ndiff(*lines) if item[0] in "+-")


@pytest.mark.sampled(1)
@pytest.mark.parametrize("straight", [False, True], ids=["here", "elsewhere"])
def test_anonymous_requests_do_not_reveal_accounts(
    world: World, monkeypatch: pytest.MonkeyPatch, straight: bool
) -> None:
    """Neither by the response nor by its cost: one password hash equals a hundred statements."""
    scene, problems = AnonymousScenario.create(world, straight=straight), []
    people = list(scene.people())
    assert (named(scene, people[0])[0].path.endswith("/upstream")) is straight

    def measure(ask: Ask, account: AccountCase) -> tuple[list[NormalizedResponse], RequestCost]:
        # Events that are recorded at most once a minute are recorded for each account.
        world.clock.advance(minutes=2)
        with work(monkeypatch) as done:
            answers = ask(scene, account)
        return [account.normalize(answer) for answer in answers], done

    for name, ask in all_requests(world):
        measure(ask, scene.nobody())
        expected, cost = measure(ask, scene.nobody())
        problems += [f"{name}: {item[0]}" for item in expected if item[0] >= 500]
        for account_case in people:
            actual, done = measure(ask, account_case)
            if actual != expected:
                problems.append(f"{name}, {account_case.kind}: another answer\n{difference(expected, actual)}")
            if not done.like(cost) and ask not in UNGUESSABLE:
                problems.append(f"{name}, {account_case.kind}: other work {done}, not {cost}")
    assert not problems, "\n".join(problems)


def test_unauthenticated_requests_do_not_reveal_ids(world: World) -> None:
    """Each route for signed-in users, with existing and unknown ids."""
    scene = AnonymousScenario.create(world, straight=False)
    *_, account_case, robot = scene.people()
    project = world.make_project(scene.organization)
    known = {
        "organization": scene.organization.id,
        "user": account_case.id,
        "service_user": robot.id,
        "project": project.id,
        "application": scene.party.client_id,
        "client_id": scene.party.client_id,
        "upstream_provider": scene.provider.id,
        "provider": scene.provider.id,
    }
    problems, routes = [], world.app.registry.introspector.get_category("routes")
    public = public_routes(world)
    checked = [route["introspectable"]["object"] for route in routes if route["introspectable"]["name"] not in public]
    for route in checked:
        nothing = dict(unsigned(scene, route, {}))
        for method, actual in unsigned(scene, route, known):
            if actual != nothing[method]:
                problems.append(f"{method} {route.pattern}\n{difference([nothing[method]], [actual])}")
    assert len(checked) > 200
    assert not problems, "\n".join(problems)
