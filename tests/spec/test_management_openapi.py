"""The API conforms to its OpenAPI document, as schemathesis checks."""

from collections.abc import Callable, Iterator, Mapping
from functools import cache
from typing import Any
from urllib.parse import urlsplit

import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from schemathesis import GenerationMode
from schemathesis.checks import CHECKS

from identity.domain.permissions import Resource
from identity.plugins.management.operation_table import OPERATIONS
from identity.testing.fixtures import DatabaseFactory
from identity.testing.response_checks import check_page, format_response
from identity.testing.service_test_client import bearer_headers
from identity.testing.world import World
from tests.plugins.management.api_fixture_data import make_fixture_data

_CHECKS = (
    "not_a_server_error",
    "status_code_conformance",
    "content_type_conformance",
    "response_headers_conformance",
    "response_schema_conformance",
)
_EXAMPLES = 6
#: Random values of these headers are refused whatever the rest of the request is.
_CONDITIONS = ("If-Match", "If-None-Match")


def document(world: World) -> dict[str, Any]:
    answer = world.client.get(f"{world.client.management_url}/openapi.json")
    assert answer.status_int == 200, format_response(answer)
    found: dict[str, Any] = answer.json
    return found


def owner_of_all(world: World) -> dict[str, str]:
    robot = world.make_service_user_program()
    world.assign_manager_role(robot, "IAM_OWNER", resource=Resource.INSTANCE)
    return bearer_headers(robot.management_token())


@cache
def operations_of(world: World) -> dict[str, Any]:
    """Schemathesis operations by operationId."""
    schema = schemathesis.openapi.from_dict(document(world))
    schema.app = world.app
    found = [all_operation.ok() for all_operation in schema.get_all_operations()]
    return {item.definition.raw["operationId"]: item for item in found}


class SchemathesisCaller:
    """Sends generated requests; every other one names an existing entity."""

    def __init__(self, world: World, name: str) -> None:
        self._operation = operations_of(world)[name]
        self._url = world.client.management_url
        self._headers = owner_of_all(world)
        self._path_values = make_fixture_data(world).path_values
        self.answered = 0

    def ask(self, mode: GenerationMode, checks: tuple[str, ...], *, without: tuple[str, ...] = ()) -> None:
        """A limited number of examples, the same in every run."""
        quick = settings(
            max_examples=_EXAMPLES,
            derandomize=True,
            database=None,
            deadline=None,
            phases=[Phase.generate],
            suppress_health_check=list(HealthCheck),
        )
        selected_checks = CHECKS.get_by_names(list(checks))

        def check(case: Any) -> None:
            self.answered += 1
            if self.answered % 2:
                case.path_parameters = {item: self._path_values[item] for item in case.path_parameters or {}}
            headers = {name: value for name, value in (case.headers or {}).items() if name not in without}
            case.headers = {**headers, **self._headers}
            case.validate_response(case.call(base_url=self._url), checks=selected_checks)

        run: Callable[[], None] = quick(given(case=self._operation.as_strategy(generation_mode=mode))(check))
        run()


@pytest.fixture(scope="module")
def disturbed(database_factory: DatabaseFactory) -> Iterator[World]:
    """A separate world, because the requests leave policies and legal holds behind."""
    world = database_factory.make_world(database_factory.new_database_settings("memory"))
    yield world
    world.close()


@pytest.mark.shows("4.9.2")
@pytest.mark.thorough
@pytest.mark.sampled(1, thorough=70)
@pytest.mark.parametrize("name", [operation.name for operation in OPERATIONS])
def test_responses_match_the_document(disturbed: World, name: str) -> None:
    asker = SchemathesisCaller(disturbed, name)
    asker.ask(GenerationMode.POSITIVE, _CHECKS)
    asker.ask(GenerationMode.NEGATIVE, (*_CHECKS, "negative_data_rejection"), without=_CONDITIONS)
    assert asker.answered


def test_document_is_public_and_cacheable(world: World) -> None:
    url = f"{world.client.management_url}/openapi.json"
    answer = world.client.get(url)
    assert answer.content_type == "application/json"
    assert answer.headers["Cache-Control"] == "public, max-age=300"
    again = world.client.get(url, {"If-None-Match": answer.headers["ETag"]})
    assert (again.status_int, again.body) == (304, b"")
    assert answer.json["openapi"] == "3.1.0"
    assert answer.json["servers"] == [{"url": world.client.management_url}]


def references(value: Any) -> set[str]:
    if isinstance(value, Mapping):
        direct = {value["$ref"]} if isinstance(value.get("$ref"), str) else set()
        return direct.union(*map(references, value.values()))
    return set().union(*map(references, value)) if isinstance(value, list) else set()


def test_references_are_complete_and_components_used(world: World) -> None:
    openapi = document(world)
    kinds = ("schemas", "responses", "parameters", "headers")
    defined = {f"#/components/{kind}/{name}" for kind in kinds for name in openapi["components"][kind]}
    assert references(openapi) == defined


def test_operation_summary_is_one_sentence(world: World) -> None:
    operations = [entry for item in document(world)["paths"].values() for entry in item.values()]
    for operation in operations:
        assert operation["summary"][0].isupper(), operation
        assert operation["summary"].endswith("."), operation
        assert operation["x-permission"], operation
    assert len({operation["operationId"] for operation in operations}) == len(operations)
    assert len({operation["summary"] for operation in operations}) == len(operations)


@pytest.mark.thorough
def test_browser_page_shows_every_operation(world: World) -> None:
    page = check_page(world.client.get(f"{world.client.management_url}/", {"Accept": "text/html"}))
    identifiers = {item["id"] for item in page.find_all(id=True)}
    assert {operation.name for operation in OPERATIONS} <= identifiers
    assert {f"schema-{name}" for name in document(world)["components"]["schemas"]} <= identifiers
    inside = {item["href"][1:] for item in page.find_all("a", href=True) if item["href"].startswith("#")}
    assert inside <= identifiers
    assert len(identifiers) == len(page.find_all(id=True)), "an id stands twice"


@pytest.mark.thorough
def test_browser_page_is_translated_and_needs_no_script(world: World) -> None:
    url = f"{world.client.management_url}/"
    german = check_page(world.client.get(url, {"Accept-Language": "de"}))
    assert german.html["lang"] == "de"
    assert check_page(world.client.get(url)).html["lang"] == "en"
    assert [item["src"] for item in german.find_all("script")] == [item["src"] for item in german.select("head script")]


def test_document_and_page_exist_on_base_host_only(three_host_world: World) -> None:
    assert urlsplit(three_host_world.client.management_url).netloc == "api.example.com"
    for path in ("/", "/openapi.json"):
        assert three_host_world.client.get(three_host_world.client.management_url + path).status_int == 200
        for host in ("id", "login"):
            assert three_host_world.client.get(f"https://{host}.example.com/management/v1{path}").status_int == 404
