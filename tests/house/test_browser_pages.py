"""Browser tests open every route of the login host, or give a reason why not."""

import pytest

from identity.http.endpoint_routes import PROTOCOL_ROUTE_PREFIX
from identity.http.route_predicates import HostPredicate
from identity.testing.world import World
from tests.browser.page_table import PAGES, UNOPENED, route_of

pytestmark = pytest.mark.storages("memory")


def routes_of_pages(world: World) -> set[str]:
    """The names of the routes of the login host that are no protocol endpoints."""
    found = set()
    for item in world.app.registry.introspector.get_category("routes"):
        route = item["introspectable"]["object"]
        hosts = [predicate.text() for predicate in route.predicates if isinstance(predicate, HostPredicate)]
        if hosts == ["host = login"] and not route.name.startswith(PROTOCOL_ROUTE_PREFIX):
            found.add(route.name)
    return found


def test_every_page_is_opened_in_a_browser(world: World) -> None:
    """If it fails, add a line to tests/browser/*_pages.py, or a reason to tests/browser/page_table.py."""
    url = world.identity.settings.login_url
    opened = {name: route_of(world, url + page_under_test.path) for name, page_under_test in PAGES.items()}
    assert {name for name, route in opened.items() if route is None} == {"error-not-found", "error-not-found-signed-in"}
    routes = routes_of_pages(world)
    assert routes - set(opened.values()) == set(UNOPENED)
    assert len(routes) > len(UNOPENED), "the routes were not found"
