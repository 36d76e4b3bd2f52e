"""Handwritten pages agree with the code: commands, settings, errors, samples and layout; examples run."""

import ast
import importlib.util
import inspect
import json
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import requests

from identity.application_factory import main as identity_application
from identity.ini_file import APP_SECTION, read_section
from identity.plugins import (
    authorization_code,
    client_credentials,
    jwt_bearer,
    organization_scopes,
    project_audience,
    project_roles,
    refresh_token,
)
from identity.plugins.device_authorization import endpoint as device_endpoint
from identity.plugins.device_authorization import grant as device_grant
from identity.plugins.end_session import endpoint as end_session_endpoint
from identity.plugins.login import interactions
from identity.plugins.management.operation_table import OPERATIONS
from identity.provider import (
    authorization_request,
    claims_request,
    client_authentication,
    code_redemption,
    consent,
    errors,
    parameters,
    pyoidc_provider,
    role_claims,
    scope,
    single_use,
    token_issuance,
)
from identity.provider.endpoints import authorization, token
from identity.settings import PLUGIN_PREFIX
from identity.storage.contract import StorageContract
from identity.testing.fixtures import WorldFactory
from identity.testing.world import pkcs1_pem
from tests.house.docs_programs import find_free_port, running, submitted
from tests.http_server import loopback_socket, running_http_server

ROOT = Path(__file__).parent.parent.parent
DOCS = ROOT / "docs"
PAGES = sorted(path for path in DOCS.rglob("*.rst") if "_build" not in path.parts)
PROSE = "\n".join(path.read_text() for path in PAGES)
SAMPLE = ROOT / "tests" / "house" / "sample_plugin"

#: Paths that are no operations of the management API.
ELSEWHERE_SERVED = ("/metrics",)

sys.path.insert(0, str(DOCS / "_ext"))
reference_pages: Any = __import__("reference_pages")


def test_documented_commands_exist() -> None:
    spoken = set(re.findall(r"(?:``|^\s+)identity ([a-z][a-z-]+)", PROSE, re.MULTILINE))
    assert spoken - set(reference_pages.list_command_names()) == set()


def test_documented_settings_exist() -> None:
    known = set(re.findall(r"^``(identity\.\S+)``$", reference_pages.settings(), re.MULTILINE))
    examples = tuple(f"{PLUGIN_PREFIX}{name}." for name in ("sample", "redis", "NAME"))
    for key in set(re.findall(r"``(identity\.[a-z_.A-Z]+)(?: = [^`]*)?``", PROSE)):
        if key.startswith(examples):
            continue
        assert key in known or _is_module(key), key


def test_documented_operations_exist() -> None:
    """Operations of the management API, such as ``DELETE /users/{user}/sessions``; the names in braces are ignored."""
    known = {f"{operation.method} {_unnamed(operation.path)}" for operation in OPERATIONS}
    found = set(re.findall(r"``(GET|POST|PATCH|DELETE)\s+(?:/management/v1)?(/[^\s`?]+)", PROSE))
    spoken = {f"{method} {_unnamed(path)}" for method, path in found if not path.startswith(ELSEWHERE_SERVED)}
    assert spoken - known == set()
    assert len(spoken) > 10


def _unnamed(path: str) -> str:
    return re.sub(r"\{[^}]*\}", "{}", path)


def _is_module(name: str) -> bool:
    """True for a module, or a name in a module."""
    module, found = name, None
    while module and found is None:
        try:
            found = importlib.util.find_spec(module)
        except ModuleNotFoundError:
            found = None
        if found is None:
            module = module.rpartition(".")[0]
    rest = name[len(module) :].strip(".")
    return bool(module) and (not rest or hasattr(importlib.import_module(module), rest.split(".")[0]))


ERRORS = {name for name, item in vars(errors).items() if inspect.isclass(item) and issubclass(item, errors.OAuthError)}

#: The page that explains the errors of these modules.
EXPLAINED: dict[str, tuple[ModuleType, ...]] = {
    "how-to/application-developers/service-users": (token_issuance, jwt_bearer, project_audience, scope),
    "reference/authorization-requests": (
        *(
            authorization_request,
            authorization,
            claims_request,
            interactions,
            pyoidc_provider,
            organization_scopes,
            parameters,
        ),
        *(project_audience, project_roles, role_claims, scope),
    ),
    "reference/code-and-refresh": (
        *(authorization_code, code_redemption, consent, single_use, refresh_token, role_claims),
    ),
    "how-to/application-developers/devices": (device_endpoint, device_grant),
    "reference/client-authentication": (client_authentication, client_credentials, token),
    "how-to/application-developers/sign-out": (end_session_endpoint,),
}
#: Functions whose errors another page explains.
EXTERNAL = {
    "how-to/application-developers/service-users": {"required_organization", "require_member"},
    "reference/authorization-requests": {"refuse_secrets"},
    # No client gets them: the page shows its own text.
    "reference/code-and-refresh": {"summarize_request"},
}


def refusals() -> Iterator[tuple[str, str]]:
    """The page and the description of every error of these modules, with "…" in place of variable parts."""
    for page, modules in EXPLAINED.items():
        for module in modules:
            described = descriptions(ast.parse(inspect.getsource(module)), excluded=EXTERNAL.get(page, set()))
            yield from ((page, item) for item in described)


def descriptions(tree: ast.Module, *, excluded: set[str]) -> Iterator[str]:
    """The texts with which a module raises an OAuthError or returns from a function ``_problem``."""
    constants = {
        target.id: node.value
        for node in ast.walk(tree)
        if isinstance(node, ast.Assign)
        for target in node.targets
        if isinstance(target, ast.Name)
    }
    for function in ast.walk(tree):
        if not isinstance(function, ast.FunctionDef) or function.name in excluded:
            continue
        for node in ast.walk(function):
            text: ast.expr | None = None
            if isinstance(node, ast.Call) and node.args and ast.unparse(node.func) in ERRORS | {"unsupported"}:
                text = node.args[0]
            elif isinstance(node, ast.Return) and function.name == "_problem":
                text = node.value
            if isinstance(text, ast.Name):
                text = constants.get(text.id)
            if isinstance(text, ast.IfExp):
                text = text.body if isinstance(text.body, ast.Constant) and text.body.value else text.orelse
            if isinstance(text, ast.JoinedStr) or (isinstance(text, ast.Constant) and isinstance(text.value, str)):
                yield _rendered(text)


def _rendered(text: ast.expr) -> str:
    if isinstance(text, ast.JoinedStr):
        return "".join(str(value.value) if isinstance(value, ast.Constant) else "…" for value in text.values)
    assert isinstance(text, ast.Constant)
    return str(text.value)


def test_each_refusal_is_explained() -> None:
    """As a row of a table, with a remedy."""
    for page, description in sorted(set(refusals())):
        text = (DOCS / f"{page}.rst").read_text()
        assert re.search(rf"^   [* ] - ``{re.escape(description)}``$", text, re.MULTILINE), (page, description)


def test_sample_pages_include_only_real_files() -> None:
    """Python, TOML, templates and catalogs come from the sample that test_sample_plugin installs and runs."""
    included_files = set()
    for path in (DOCS / "tutorials" / "plugin.rst", DOCS / "how-to" / "plugin-authors" / "interactions.rst"):
        page = path.read_text()
        included = re.findall(r"^\.\. literalinclude:: (\S+)", page, re.MULTILINE)
        included_files |= {(path.parent / name).resolve() for name in included}
        assert set(re.findall(r"^\.\. code-block:: (\w+)", page, re.MULTILINE)) <= {"text", "ini"}
    kinds = (".py", ".toml", ".html", ".po")
    files = {path for path in SAMPLE.rglob("*") if path.suffix in kinds and "__pycache__" not in path.parts}
    assert included_files == files


def test_backend_steps_cover_the_storage_contract() -> None:
    page = (DOCS / "how-to" / "plugin-authors" / "storage-backends.rst").read_text().partition("     - ``-k``\n")[2]
    steps = {
        step_name
        for step in re.findall(r"^     - ``([a-z_ ]+)``$", page, re.MULTILINE)
        for step_name in step.split(" or ")
    }
    tests = {name for name in dir(StorageContract) if name.startswith("test_")}
    assert {name for name in tests if not any(step in name for step in steps)} == set()
    assert {step for step in steps if not any(step in name for name in tests)} == set()


def test_pages_are_plain() -> None:
    for path in PAGES:
        text = path.read_text()
        prose = "\n".join(line for line in text.splitlines() if not line.startswith("    "))
        assert "!" not in re.sub(r"``.*?``", "", prose, flags=re.DOTALL), path
        assert not re.search(r"/(root|home|work|Users)/", text), path
        title = text.lstrip().splitlines()[0]
        assert title[0].isupper() or title.startswith(("identity", "0")) or path.name == "index.rst", path


def test_decision_records_are_short_and_complete() -> None:
    for path in sorted((DOCS / "contributors" / "decisions").glob("0*.rst")):
        text = path.read_text()
        assert len(text.partition("**Context.**")[2].splitlines()) <= 22, path
        assert re.search(
            r"^:Status: (accepted|superseded by :doc:`00\d\d-[a-z-]+`)\n:Date: \d{4}-\d\d-\d\d$", text, re.MULTILINE
        )
        assert [text.count(f"**{part}.**") for part in ("Context", "Decision", "Consequences")] == [1, 1, 1]
        assert text.startswith(path.stem[:4])


def test_documented_commands_of_the_first_client_work() -> None:
    """The first commands that a newcomer types."""
    page = (DOCS / "how-to" / "operators" / "install-and-run.rst").read_text()
    options = set(re.findall(r"(--[a-z-]+)", page.partition("identity bootstrap -c")[2].partition("Files are")[0]))
    help_text = reference_pages.commands().partition("identity bootstrap\n---")[2].partition("\nidentity ")[0]
    assert {option for option in options if option not in help_text} == set()


@pytest.mark.storages("memory")
def test_example_client_gets_a_token(make_world: WorldFactory, tmp_path: Path) -> None:
    bound = loopback_socket()
    issuer = f"http://127.0.0.1:{bound.getsockname()[1]}"
    world = make_world(**{"identity.issuer_url": issuer, "identity.development": "true"})
    robot = world.make_service_user_program()
    key_file = tmp_path / "key.json"
    members = {"type": "serviceaccount", "keyId": robot.key_id, "key": pkcs1_pem(robot.key), "userId": robot.id}
    key_file.write_text(json.dumps(members))
    example = DOCS / "how-to" / "application-developers" / "examples" / "first_token.py"
    with running_http_server(world.app, bound):
        run = subprocess.run(
            [sys.executable, example, issuer, key_file], capture_output=True, text=True, check=False, timeout=60
        )
    assert run.returncode == 0, run.stderr
    assert json.loads(run.stdout)["sub"] == robot.id


@pytest.mark.thorough
def test_example_application_signs_people_in(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """As the pages describe: start the service, register, sign in, choose a password, sign out."""
    bound = loopback_socket()
    variables = {"http_port": str(bound.getsockname()[1]), "data": str(tmp_path)}
    settings = read_section(str(ROOT / "development.ini"), APP_SECTION, variables)
    router = identity_application({}, **settings)
    output = capsys.readouterr().out
    (login_name,) = re.findall(r"first owner +(\S+)", output)
    (one_time_password,) = re.findall(r"password +(\S+)", output)
    home = f"http://localhost:{find_free_port()}"

    example = DOCS / "how-to" / "administrators" / "examples" / "register_application.py"
    arguments = [ROOT / "development.ini", "Example", home, *(f"{name}={value}" for name, value in variables.items())]
    run = subprocess.run([sys.executable, example, *arguments], capture_output=True, text=True, check=False, timeout=60)
    assert run.returncode == 0, run.stderr
    registered = dict(re.findall(r"^(client id|client secret) +(\S+)$", run.stdout, re.MULTILINE))

    script = DOCS / "how-to" / "application-developers" / "examples" / "web_application.py"
    issuer = settings["identity.issuer_url"]
    answers = (issuer, registered["client id"], registered["client secret"], home.rpartition(":")[2])
    with running_http_server(router, bound), running(script, *answers), requests.Session() as browser:
        response = submitted(browser, browser.get(f"{home}/sign-in", timeout=30), login_name=login_name)
        response = submitted(browser, response, password=one_time_password)
        response = submitted(browser, response, new_password="not the one that was printed")
        assert "Hello First Owner." in response.text, response.text
        assert "Hello First Owner." in browser.get(f"{home}/sign-in", timeout=30).text, "signed in already"
        response = browser.get(f"{home}/sign-out", timeout=30)
        assert response.url == f"{home}/"
        assert "You are not signed in." in response.text
        response = browser.get(f"{home}/sign-in", timeout=30)
        assert "login_name" in response.text, "the session at the service is over too"
    router.registry.application.close()
