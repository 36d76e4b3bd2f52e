"""The documentation plugin: pages under /docs, and /llms.txt."""

import base64
import hashlib
from collections.abc import Callable
from pathlib import Path

import pytest

from identity.plugins import documentation
from identity.testing.assembled_service import THREE_HOST_SETTINGS
from identity.testing.world import World

pytestmark = pytest.mark.storages("memory")

SCRIPT = 'document.body.dataset.theme = "auto";'
PAGE = f"<!doctype html><title>identity</title><body><script>{SCRIPT}</script><a href='how-to/users.html'>Users</a>"


@pytest.fixture
def world(make_world: Callable[..., World], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> World:
    """A service with a small documentation, beside a file that is none of it."""
    folder = tmp_path / "html"
    (folder / "how-to").mkdir(parents=True)
    (folder / "_static").mkdir()
    for name, text in (
        ("index.html", PAGE),
        ("how-to/index.html", PAGE),
        ("_static/theme.css", "body { color: black }"),
        ("llms.txt", "# identity\n"),
    ):
        (folder / name).write_text(text)
    (tmp_path / "secret").write_text("not for readers")
    monkeypatch.setattr(documentation, "BUILT_FOLDER", folder)
    return make_world(**THREE_HOST_SETTINGS)


def test_pages_and_files_are_served_to_everyone(world: World) -> None:
    site = world.settings["identity.login_url"]
    page = world.client.get(f"{site}/docs/")
    assert (page.status_int, page.content_type, page.text) == (200, "text/html", PAGE)
    assert page.headers["Cache-Control"] == "public, max-age=300"
    assert world.client.get(f"{site}/docs/_static/theme.css").content_type == "text/css"
    for path in ("/docs", "/docs/how-to"):
        assert world.client.get(site + path).headers["Location"] == f"{site}{path}/"
    contents = world.client.get(f"{site}/llms.txt")
    assert (contents.status_int, contents.content_type, contents.text) == (200, "text/plain", "# identity\n")


def test_only_scripts_of_the_pages_may_run(world: World) -> None:
    policy = world.client.get(f"{world.settings['identity.login_url']}/docs/").headers["Content-Security-Policy"]
    digest = base64.b64encode(hashlib.sha256(SCRIPT.encode()).digest()).decode()
    (scripts,) = (part for part in policy.split("; ") if part.startswith("script-src"))
    assert scripts == f"script-src 'self' 'sha256-{digest}'"
    assert policy.startswith("default-src 'none'")


@pytest.mark.parametrize(
    "path",
    ["/docs/../secret", "/docs/%2e%2e/secret", "/docs/..%2fsecret", "/docs/none.html", "/docs/%00", "/docs//secret"],
)
def test_other_files_are_not_found(world: World, path: str) -> None:
    assert world.client.get(world.settings["identity.login_url"] + path).status_int == 404


def test_other_hosts_have_no_documentation(world: World) -> None:
    for name in ("identity.issuer_url", "identity.base_url"):
        assert world.client.get(f"{world.settings[name]}/docs/").status_int == 404


def test_missing_documentation_says_how_to_build_it(
    make_world: Callable[..., World], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(documentation, "BUILT_FOLDER", tmp_path / "html")
    world = make_world()
    for path in ("/docs/", "/docs/index.html", "/llms.txt"):
        answer = world.client.get(world.issuer + path)
        assert answer.status_int == 404
        assert "make docs" in answer.text
