"""A service with two pages of a test plugin."""

import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any, ClassVar

import pytest
from pyramid.config import Configurator
from pyramid.security import NO_PERMISSION_REQUIRED
from webtest import TestApp

from identity import hookimpl
from identity.application_factory import create_application, create_wsgi_app
from identity.domain.errors import Conflict, Denied, Invalid
from identity.domain.messages import gettext_lazy
from identity.pages.forms import Form
from identity.pages.layout import NavigationGroup, NavigationItem, OrganizationSwitcher, PageLayout, SignedInUser
from identity.pages.page import FormPage, Page
from identity.storage.errors import StorageUnavailable
from identity.testing.clock import FakeClock

TEMPLATES = Path(__file__).parent / "templates"

FRAME = PageLayout(
    home_path="/account",
    session_id="1",
    sign_out_path="/oauth/v2/endsession",
    user=SignedInUser(name="Ada <Lovelace>", login_name="ada@acme.example"),
    switcher=OrganizationSwitcher(
        prefix="Organization:",
        label="Acme & Co",
        heading="Your organizations",
        items=(NavigationItem(label="Acme & Co", href="/o/1", is_current=True),),
    ),
    groups=(
        NavigationGroup(items=(NavigationItem(label="Overview", href="/overview", icon="overview"),)),
        NavigationGroup(
            title="Acme & Co",
            items=(
                NavigationItem(label="Things", href="/things", icon="service", is_current=True),
                NavigationItem(label="Users", href="/users", icon="users"),
            ),
        ),
    ),
)


class SamplePage(FormPage):
    """A form with every kind of field; its attributes set what it does."""

    template = "sample.html"
    fields = ("name", "note", "kind", "agreed", "role", "password")
    secret_fields = frozenset({"password"})
    repeated_fields = frozenset({"role"})
    is_creation = True
    submitted: ClassVar[list[Form]] = []
    raises: ClassVar[list[Exception]] = []

    def common_variables(self) -> dict[str, Any]:
        return {"frame": FRAME}

    def initial_values(self) -> dict[str, Any]:
        return {"name": "Stored <name>", "kind": "b", "role": ("writer",), "version": "7"}

    def validate(self, form: Form) -> None:
        if form.text("name") == "bad":
            raise Invalid({"name": gettext_lazy("Use at most {length} characters.", length=200)})

    def submit(self, form: Form) -> Any:
        self.submitted.append(form)
        self.request.services.organizations.create(_a_command(form.text("name")))
        if self.raises:
            raise self.raises.pop()
        return self.redirect("/things")


def _a_command(name: str) -> Any:
    from identity.services.commands.organizations import CreateOrganization

    return CreateOrganization(name=f"{name[:20]} {uuid.uuid4()}")


class OneFieldPage(FormPage):
    template = "one_field.html"
    fields = ("code",)

    def submit(self, form: Form) -> Any:
        raise Invalid({"code": gettext_lazy("Enter the code.")})


class BrandedSamplePage(Page):
    template = "branded_sample.html"

    def common_variables(self) -> dict[str, Any]:
        return {"frame": FRAME}

    def template_variables(self) -> dict[str, Any]:
        return {"who": "<b>Ada</b>", "now": self.request.registry.application.clock()}


class FailingPage(Page):
    template = "branded_sample.html"
    problems: ClassVar[dict[str, Exception]] = {
        "denied": Denied(gettext_lazy("This requires the permission {permission}.", permission="user.read")),
        "unavailable": StorageUnavailable("db.internal"),
        "unexpected": RuntimeError("db.internal"),
        "conflict": Conflict(gettext_lazy("This domain must be verified first.")),
    }

    def template_variables(self) -> dict[str, Any]:
        raise self.problems[self.request.matchdict["what"]]


class SamplePagesPlugin:
    @hookimpl
    def identity_configure(self, config: Configurator) -> None:
        config.include("identity.pages")
        config.include("identity.pages")
        config.add_page_templates(str(TEMPLATES))
        everybody = NO_PERMISSION_REQUIRED
        config.add_page("thing", "/things/new", SamplePage, permission=everybody)
        config.add_page("one", "/one", OneFieldPage, permission=everybody)
        config.add_page("looked", "/things", BrandedSamplePage, permission=everybody)
        config.add_page("failing", "/failing/{what}", FailingPage, permission=everybody)
        config.add_page("closed", "/closed", BrandedSamplePage, permission="user.read", authenticate="bearer")
        config.add_route("by_hand", "/by-hand", host="login")
        config.add_view(lambda request: request.response, route_name="by_hand", permission=everybody)


class PageBrowser:
    """A WebTest client that sends browser headers."""

    def __init__(self, settings: dict[str, str]) -> None:
        self.identity = create_application(settings, clock=FakeClock())
        self.identity.background_worker.stop()
        self.identity.plugin_host.register("things", SamplePagesPlugin())
        self.router = create_wsgi_app(self.identity, settings)
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
        """The number of organizations that the test created."""
        with self.identity.read_session() as services:
            from identity.storage.paging import PageRequest

            return len(services.storage.organizations.page(PageRequest(limit=100)).items) - self.before


def _named(headers: dict[str, str]) -> dict[str, str]:
    return {name.replace("_", "-"): value for name, value in headers.items() if value}


@pytest.fixture
def settings(database_factory: Any) -> dict[str, str]:
    found: dict[str, str] = database_factory.new_database_settings("memory")
    return found


@pytest.fixture(scope="session")
def service(database_factory: Any) -> Iterator[PageBrowser]:
    """Shared, because creating a service takes longer than most tests."""
    page_browser = PageBrowser(database_factory.new_database_settings("memory"))
    yield page_browser
    page_browser.identity.close()


@pytest.fixture
def browser(service: PageBrowser) -> Iterator[PageBrowser]:
    """A browser without cookies."""
    service.app.reset()
    service.before = service.before + service.organizations()
    yield service
    SamplePage.submitted.clear()
    SamplePage.raises.clear()
