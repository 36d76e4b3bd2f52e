"""The documentation's web application in a browser."""

import socket
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass

import pytest

from tests.browser.example_company import ExampleCompany
from tests.browser.tab import Tab
from tests.house.service_processes import ROOT, free_port

SCRIPT = ROOT / "docs" / "how-to" / "application-developers" / "examples" / "web_application.py"


@dataclass(frozen=True)
class DocsExample:
    """The running program."""

    port: int

    @property
    def home(self) -> str:
        return f"http://localhost:{self.port}/"


@pytest.fixture
def example(site: ExampleCompany) -> Iterator[DocsExample]:
    docs_example = DocsExample(free_port())
    client = site.world.make_web_application(
        site.world.make_project(site.organization).id,
        redirect_uris=(f"{docs_example.home}callback",),
        post_logout_redirect_uris=(docs_example.home,),
        development=True,
    )
    arguments = [site.world.identity.settings.issuer_url, client.client_id, client.secret, str(docs_example.port)]
    with subprocess.Popen([sys.executable, SCRIPT, *arguments], stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            assert docs_example.home in process.stdout.readline()
            yield docs_example
        finally:
            process.terminate()


@pytest.mark.thorough
def test_docs_web_application_sign_in_and_logout(site: ExampleCompany, tab: Tab, example: DocsExample) -> None:
    anna = site.make_user()
    # Browsers open idle connections in advance.
    with socket.create_connection(("localhost", example.port)):
        tab.open(example.home)
        tab.follow("Sign in")
        site.sign_in(tab, anna)
        assert (tab.url, "Hello Anna Berg." in tab.text) == (example.home, True)
        tab.follow("Sign out")
        assert (tab.url, "You are not signed in." in tab.text) == (example.home, True)
        tab.follow("Sign in")
        assert tab.heading == "Sign in", "the session at the service is over too"
