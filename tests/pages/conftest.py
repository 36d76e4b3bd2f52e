"""A service with two pages of a plugin's own, made for these tests alone."""

import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any, ClassVar

import pytest
from pyramid.config import Configurator
from pyramid.security import NO_PERMISSION_REQUIRED
from webtest import TestApp

from identity import hookimpl
from identity.app import assemble, configure
from identity.domain.errors import Conflict, Denied, Invalid
from identity.domain.words import say
from identity.pages.forms import Form
from identity.pages.frame import Frame, Group, Item, Person, Switcher
from identity.pages.page import FormPage, Page
from identity.storage.errors import Unavailable
from identity.testing.clock import MovableClock

TEMPLATES = Path(__file__).parent / "templates"

FRAME = Frame(
    home="/account",
    sign_out="/oauth/v2/endsession",
    person=Person(name="Ada <Lovelace>", login_name="ada@acme.example"),
    switcher=Switcher(
        meaning="Organization:",
        label="Acme & Co",
        head="Your organizations",
        items=(Item(label="Acme & Co", href="/o/1", current=True),),
    ),
    groups=(
        Group(items=(Item(label="Overview", href="/overview", icon="overview"),)),
        Group(
            title="Acme & Co",
            items=(
                Item(label="Things", href="/things", icon="service", current=True),
                Item(label="Users", href="/users", icon="users"),
            ),
        ),
    ),
)


class Thing(FormPage):
    """A form with every kind of field; what it does is told by the test that posts it."""

    template = "thing.html"
    fields = ("name", "note", "kind", "agreed", "role", "password")
    secret_fields = frozenset({"password"})
    repeated_fields = frozenset({"role"})
    creates = True
    submitted: ClassVar[list[Form]] = []
    raises: ClassVar[list[Exception]] = []

    def shared(self) -> dict[str, Any]:
        return {"frame": FRAME}

    def values(self) -> dict[str, Any]:
        return {"name": "Stored <name>", "kind": "b", "role": ("writer",), "version": "7"}

    def check(self, form: Form) -> None:
        if form.one("name") == "bad":
            raise Invalid({"name": say("Use at most {length} characters.", length=200)})

    def submit(self, form: Form) -> Any:
        self.submitted.append(form)
        self.request.services.organizations.create(_a_command(form.one("name")))
        if self.raises:
            raise self.raises.pop()
        return self.redirect("/things")


def _a_command(name: str) -> Any:
    from identity.services.commands.organizations import CreateOrganization

    return CreateOrganization(name=f"{name[:20]} {uuid.uuid4()}")


class OneField(FormPage):
    template = "one.html"
    fields = ("code",)

    def submit(self, form: Form) -> Any:
        raise Invalid({"code": say("Enter the code.")})


class Looked(Page):
    template = "looked.html"

    def shared(self) -> dict[str, Any]:
        return {"frame": FRAME}

    def show(self) -> dict[str, Any]:
        return {"who": "<b>Ada</b>", "now": self.request.registry.identity.clock()}


class Failing(Page):
    template = "looked.html"
    problems: ClassVar[dict[str, Exception]] = {
        "denied": Denied(say("This needs the permission {permission}.", permission="user.read")),
        "unavailable": Unavailable("db.internal"),
        "unexpected": RuntimeError("db.internal"),
        "conflict": Conflict(say("This domain has to be proven first.")),
    }

    def show(self) -> dict[str, Any]:
        raise self.problems[self.request.matchdict["what"]]


class Plugin:
    @hookimpl
    def identity_configure(self, config: Configurator) -> None:
        config.include("identity.pages")
        config.include("identity.pages")
        config.add_page_templates(str(TEMPLATES))
        everybody = NO_PERMISSION_REQUIRED
        config.add_page("thing", "/things/new", Thing, permission=everybody)
        config.add_page("one", "/one", OneField, permission=everybody)
        config.add_page("looked", "/things", Looked, permission=everybody)
        config.add_page("failing", "/failing/{what}", Failing, permission=everybody)
        config.add_page("closed", "/closed", Looked, permission="user.read", authenticate="bearer")
        config.add_route("by_hand", "/by-hand", host="login")
        config.add_view(lambda request: request.response, route_name="by_hand", permission=everybody)


class Browser:
    """WebTest with the headers of a browser, on one service."""

    def __init__(self, settings: dict[str, str]) -> None:
        self.identity = assemble(settings, clock=MovableClock())
        self.identity.worker.stop()
        self.identity.host.register("things", Plugin())
        self.router = configure(self.identity, settings)
        self.pages = self.router.registry.pages
        self.before = 0
        self.app = TestApp(self.router, extra_environ={"HTTP_HOST": "id.example.com", "wsgi.url_scheme": "https"})

    def get(self, path: str, *, accept: str = "text/html", **headers: str) -> Any:
        return self.app.get(path, headers=_named({"accept": accept, **headers}), expect_errors=True)

    def post(self, path: str, fields: Any, **headers: str) -> Any:
        sent = _named({"accept": "text/html", "sec_fetch_site": "same-origin", **headers})
        return self.app.post(path, fields, headers=sent, expect_errors=True)

    def send(self, path: str, changed: dict[str, str], **headers: str) -> Any:
        """The page's form with these fields changed, as a browser would send it."""
        form = self.get(path).forms["page-form"]
        fields = dict(form.submit_fields())
        return self.post(path, fields | changed, **headers)

    def organizations(self) -> int:
        """How many a test has made."""
        with self.identity.reading() as services:
            from identity.storage.paging import PageRequest

            return len(services.storage.organizations.page(PageRequest(limit=100)).items) - self.before


def _named(headers: dict[str, str]) -> dict[str, str]:
    return {name.replace("_", "-"): value for name, value in headers.items() if value}


@pytest.fixture
def settings(databases: Any) -> dict[str, str]:
    found: dict[str, str] = databases.settings("memory")
    return found


@pytest.fixture(scope="session")
def service(databases: Any) -> Iterator[Browser]:
    """Making one takes longer than most tests."""
    made = Browser(databases.settings("memory"))
    yield made
    made.identity.close()


@pytest.fixture
def browser(service: Browser) -> Iterator[Browser]:
    """A browser without cookies."""
    service.app.reset()
    service.before = service.before + service.organizations()
    yield service
    Thing.submitted.clear()
    Thing.raises.clear()
