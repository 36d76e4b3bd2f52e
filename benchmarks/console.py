"""What a console page costs with many users and projects: CPU time in one process, without a web server.

One organization holds all of them, and whoever looks manages the whole instance: the most that a page can have to show.
"""

import io
import statistics
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from pyramid.paster import get_app, get_appsettings

from benchmarks.service import Place
from identity import first_start
from identity.app import assemble
from identity.domain.authentication import Proof
from identity.domain.permissions import INSTANCE, organization_resource
from identity.domain.projects import ProjectRole
from identity.domain.users import Profile
from identity.process import Identity
from identity.services.access import THE_OPERATOR
from identity.services.commands.managers import AddManager
from identity.services.commands.organizations import CreateOrganization
from identity.services.commands.users import CreateHumanUser
from identity.storage.backend import Storage
from identity.storage.contract import factories

#: CPU seconds of the server that a page may take.
TARGET = 0.030
#: The same for searches that find little or nothing, and so read what is known of all users.
SEARCH_TARGET = 0.050

USERS, SERVICE_USERS, PROJECTS, EVENTS = 100_000, 2_000, 10_000, 50_000
_MANAGERS = 20
#: What a session's cookie is called over plain http, before its id.
_COOKIE = "session-"
_BATCH = 5000
_WARM_UP = 3
_TIMES = 15

Application = Callable[..., Iterable[bytes]]


@dataclass(frozen=True)
class Visited:
    """One page: how long it took the processor, in seconds, and how large it was, in bytes."""

    path: str
    title: str
    span: float
    size: int

    @property
    def target(self) -> float:
        """How long it may take."""
        return SEARCH_TARGET if "search" in self.title else TARGET


@dataclass(frozen=True)
class _Filled:
    organization_id: str
    user_id: str
    service_user_id: str
    project_id: str
    application_id: str
    cookie: str


def measure(place: Place) -> list[Visited]:
    """Every page of ``_pages`` over a database that is filled first. Raises ValueError for one that does not answer."""
    identity = assemble(get_appsettings(str(place.ini)))
    try:
        first_start.prepare(identity, announce=False)
        filled = _fill(identity)
    finally:
        identity.close()
    application: Application = get_app(str(place.ini))
    return [_visit(application, place, filled, title, path) for title, path in _pages(filled)]


def table(visited: Iterable[Visited]) -> str:
    """The figures for people."""
    head = (
        f"Console pages, CPU of the server in one process (SQLite, {USERS:,} users, {PROJECTS:,} projects,"
        f" {EVENTS:,} audit events)"
    )
    lines = ["", head, "", f"{'page':<42}{'ms':>8}{'target':>8}{'kB':>8}"]
    lines += [
        f"{one.title:<42}{one.span * 1000:8.1f}{one.target * 1000:8.0f}{one.size / 1000:8.1f}"
        f"{'' if one.span <= one.target else '  missed'}"
        for one in visited
    ]
    return "\n".join(lines)


def _pages(filled: _Filled) -> Iterator[tuple[str, str]]:
    root = f"/console/organizations/{filled.organization_id}"
    yield "overview", f"{root}/overview"
    yield "users", f"{root}/users"
    yield "users, sorted by address", f"{root}/users?sort=-email"
    yield "users, searched by a surname", f"{root}/users?q=berg+77"
    yield "users, searched by part of an address", f"{root}/users?q=77%40acme"
    yield "users, searched in vain", f"{root}/users?q=nobody"
    yield "user", f"/console/users/{filled.user_id}"
    yield "service users", f"{root}/service-users"
    yield "service user", f"/console/service-users/{filled.service_user_id}"
    yield "projects", f"{root}/projects"
    yield "projects, searched", f"{root}/projects?q=project+99"
    yield "project", f"/console/projects/{filled.project_id}"
    yield "application", f"/console/applications/{filled.application_id}"
    yield "application, to change", f"/console/applications/{filled.application_id}/edit"
    yield "organization", root
    yield "managers, add: search", f"{root}/managers/new?q=person5"
    yield "organizations", "/console/organizations"
    yield "instance", "/console/instance"
    yield "signing keys", "/console/instance/signing-keys"
    yield "audit events", f"{root}/audit-events"
    yield "audit events, refused", f"{root}/audit-events?result=refused"
    yield "audit events of all, by event", "/console/audit-events?event=user.created"
    yield "token preview", f"{root}/token-preview"


def _fill(identity: Identity) -> _Filled:
    """One organization with everything, looked at by an IAM_OWNER who is signed in."""
    with identity.transaction() as services:
        organization = services.organizations.create(CreateOrganization(name="Enormous"))
        command = CreateHumanUser(user_name="owner", given_name="Olga", family_name="Owner")
        owner = services.users.create(organization.id, command)
        role = AddManager(user_id=owner.id, roles=frozenset({"IAM_OWNER"}))
        services.managers.add(INSTANCE, role, by=THE_OPERATOR)
        subject = services.storage.users.find_subject(owner.id)
        assert subject is not None  # noqa: S101 - made above
        account, secret = services.sessions.sign_in(
            subject, (), proofs=(Proof("password", ("pwd",), services.now),), user_agent="Benchmark/1.0"
        )
    user_id = service_user_id = project_id = application_id = ""
    for number, storage in _in_batches(identity, USERS):
        user = factories.a_human_user(organization, user_name=f"person{number:06}", profile=_profile(number))
        storage.users.add(user)
        user_id = user.id
    for number, storage in _in_batches(identity, SERVICE_USERS):
        robot = factories.a_service_user(organization, user_name=f"robot{number:05}")
        storage.users.add(robot)
        storage.credentials.add(factories.a_key(robot))
        service_user_id = robot.id
    for number, storage in _in_batches(identity, PROJECTS):
        project = factories.a_project(organization, name=f"Project {number:05}")
        storage.projects.add(project)
        storage.projects.add_role(ProjectRole(project_id=project.id, key="reader", display_name="Reader"))
        application = factories.an_application(project, name="Portal")
        storage.applications.add(application)
        project_id, application_id = project.id, application.id
    for _, storage in _in_batches(identity, EVENTS):
        storage.audit.append(factories.an_audit_event(organization_id=organization.id))
    with identity.transaction() as services:
        for one in services.storage.users.page(organization.id, None).items[:_MANAGERS]:
            wanted = AddManager(user_id=one.id, roles=frozenset({"ORG_OWNER_VIEWER"}))
            services.managers.add(organization_resource(organization.id), wanted, by=THE_OPERATOR)
    cookie = f"{_COOKIE}{account.session.id}={secret}"
    return _Filled(organization.id, user_id, service_user_id, project_id, application_id, cookie)


def _in_batches(identity: Identity, count: int) -> Iterator[tuple[int, Storage]]:
    """Numbers from 0 on, each with the storage of a transaction that is committed now and then."""
    for start in range(0, count, _BATCH):
        with identity.transaction() as services:
            for number in range(start, min(start + _BATCH, count)):
                yield number, services.storage


def _profile(number: int) -> Profile:
    return Profile(given_name="Anna", family_name=f"Berg {number}", email=f"person{number}@acme.example")


def _visit(application: Application, place: Place, filled: _Filled, title: str, path: str) -> Visited:
    spans, size = [], 0
    for turn in range(_WARM_UP + _TIMES):
        environ = _environ(place, filled, path)
        started = time.process_time()
        status, body = _call(application, environ)
        span = time.process_time() - started
        if not status.startswith("200 "):
            raise ValueError(f"{path} answers {status}")
        if turn >= _WARM_UP:
            spans.append(span)
        size = len(body)
    return Visited(path, title, statistics.median(spans), size)


def _environ(place: Place, filled: _Filled, path: str) -> dict[str, Any]:
    name, _, query = path.partition("?")
    return {
        "REQUEST_METHOD": "GET",
        "SCRIPT_NAME": "",
        "PATH_INFO": name,
        "QUERY_STRING": query,
        "SERVER_NAME": "localhost",
        "SERVER_PORT": str(place.port),
        "SERVER_PROTOCOL": "HTTP/1.1",
        "HTTP_HOST": place.host,
        "HTTP_COOKIE": filled.cookie,
        "REMOTE_ADDR": "127.0.0.1",
        "wsgi.version": (1, 0),
        "wsgi.url_scheme": "http",
        "wsgi.input": io.BytesIO(),
        "wsgi.errors": sys.stderr,
        "wsgi.multithread": False,
        "wsgi.multiprocess": False,
        "wsgi.run_once": False,
    }


def _call(application: Application, environ: dict[str, Any]) -> tuple[str, bytes]:
    answered: list[str] = []

    def start_response(status: str, headers: object, exc_info: object = None) -> None:
        answered.append(status)

    body = application(environ, start_response)
    try:
        content = b"".join(body)
    finally:
        if hasattr(body, "close"):
            body.close()
    return answered[-1], content
