"""Each list, form and action that the console declares has a route."""

from collections.abc import Iterator
from functools import partial
from types import SimpleNamespace
from typing import Any

import pytest

from identity.domain.projects import Project
from identity.http.route_contexts import RouteContext
from identity.plugins.console.actions import Action
from identity.plugins.console.bulk_actions import BulkAction
from identity.plugins.console.console_page import ConsolePage
from identity.plugins.console.entity_forms import CreateForm, EditForm
from identity.plugins.console.lists import ResourceList, column_id
from identity.plugins.console.pages import _MODULES
from identity.plugins.console.resource_pages import ResourcePages

DECLARATIONS = (Action, CreateForm, EditForm, ResourceList, ResourcePages)


def declared() -> Iterator[tuple[str, Any]]:
    """Each declaration in a console module, with its name."""
    for module in _MODULES:
        for name, value in vars(module).items():
            for item in value if isinstance(value, tuple) else (value,):
                if isinstance(item, DECLARATIONS):
                    yield f"{module.__name__}.{name}", item


def test_each_declaration_has_a_route() -> None:
    pages = [route.page for module in _MODULES for route in module.ROUTES]
    served = [value for page in pages if isinstance(page, partial) for value in page.keywords.values()]
    tabs = [tab for value in served if isinstance(value, ResourcePages) for tab in value.tabs]
    known = {id(value) for value in (*served, *(tab.resource_list for tab in tabs))}
    # An application has either secrets or federated credentials: a page never has more than six tabs.
    assert all(len(value.tabs) <= 7 for value in served if isinstance(value, ResourcePages))
    assert {name for name, item in declared() if id(item) not in known} == set()
    assert len({id(item) for _, item in declared()}) > 60


def test_permissions_of_actions_are_those_of_their_routes() -> None:
    routes = [route for module in _MODULES for route in module.ROUTES if isinstance(route.page, partial)]
    checked = 0
    for route in routes:
        action, kind = route.page.keywords.get("action"), route.page.keywords.get("resource_type")
        if isinstance(action, BulkAction):
            assert route.permission == action.permission, route.path
            assert route.path.endswith(f"/selected/{action.path}")
            checked += 1
        elif action is not None:
            assert route.permission == kind.permission(action.permission), route.path
            assert route.path == f"{kind.path}{action.path}"
            checked += 1
    assert checked > 30


def test_columns_of_a_list_have_different_ids() -> None:
    lists = [item for _, item in declared() if isinstance(item, ResourceList)]
    assert lists
    for item in lists:
        assert len({*map(column_id, item.columns)}) == len(item.columns), item.title


def test_page_is_not_about_another_model() -> None:
    page = ConsolePage(RouteContext(None, SimpleNamespace(id="1")), SimpleNamespace(path="/console/users/1"))
    with pytest.raises(TypeError, match="/console/users/1 is not about a Project"):
        page.entity_of(Project)
