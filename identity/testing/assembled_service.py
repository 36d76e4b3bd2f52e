"""The service under test: assembled, bootstrapped, behind WebTest, with a fake clock."""

import itertools
from collections.abc import Iterable, Mapping
from contextlib import AbstractContextManager
from functools import cached_property
from inspect import signature
from operator import attrgetter
from typing import Any, ClassVar

from cryptography.hazmat.primitives.asymmetric.rsa import RSAPrivateKey, generate_private_key
from jinja2 import BytecodeCache
from jinja2.bccache import Bucket
from pyramid.router import Router
from webtest import TestApp

from identity import bootstrap
from identity.application import IdentityApplication
from identity.application_factory import create_application, create_wsgi_app
from identity.asgi import AsgiApplication
from identity.background_worker import BackgroundWorker
from identity.crypto.argon2id import Argon2Cost
from identity.domain.audiences import AudienceScope
from identity.domain.audit import AuditEvent, AuditFilter
from identity.domain.instance import Instance
from identity.services.access_control import Principal
from identity.services.container import Services
from identity.storage.paging import MAX_PAGE_ROWS, PageRequest
from identity.testing.asgi_adapter import WsgiToAsgiAdapter
from identity.testing.clock import FakeClock
from identity.testing.service_test_client import ServiceTestClient

#: All plugins that come with the service; the storage's plugin is put before them.
DEFAULT_PLUGINS = (
    "client_secret_basic client_secret_post private_key_jwt mutual_tls client_id_metadata_documents public_client"
    " authorization_code implicit hybrid pushed_authorization_requests request_objects jarm dpop refresh_token"
    " client_credentials jwt_bearer workload_federation device_authorization token_exchange introspection"
    " revocation end_session back_channel_logout front_channel_logout oidc_scopes project_audience"
    " resource_indicators project_roles organization_scopes manager_roles upstream ldap login account console"
    " management scim documentation passkeys totp email_code recovery_codes metrics tracing"
)

ONE_HOST_SETTINGS = {"identity.issuer_url": "https://id.example.com"}
THREE_HOST_SETTINGS = {
    "identity.issuer_url": "https://id.example.com",
    "identity.base_url": "https://api.example.com",
    "identity.login_url": "https://login.example.com",
}


class _CompiledTemplates(BytecodeCache):
    """Compiled templates, shared by all worlds of this process: compiling takes longer than rendering."""

    def __init__(self) -> None:
        self._bytecode: dict[str, bytes] = {}

    def load_bytecode(self, bucket: Bucket) -> None:
        if bucket.key in self._bytecode:
            bucket.bytecode_from_string(self._bytecode[bucket.key])

    def dump_bytecode(self, bucket: Bucket) -> None:
        self._bytecode[bucket.key] = bucket.bytecode_to_string()


_TEMPLATES = _CompiledTemplates()


class _CheapCost(Argon2Cost):
    """Password hashing parameters for tests: a thousandth of the configured cost."""

    def __post_init__(self) -> None:
        pass

    @classmethod
    def from_cost(cls, cost: Argon2Cost) -> "_CheapCost":
        return cls(memory_kib=cost.memory_kib // 1000, iterations=cost.iterations)


class RsaKeyPool:
    """A few RSA keys, handed out in turn: generating one takes longer than a whole test."""

    def __init__(self, size: int = 4) -> None:
        self._keys = [generate_private_key(public_exponent=65537, key_size=2048) for _ in range(size)]
        self._turn = itertools.cycle(self._keys)

    def next(self) -> RSAPrivateKey:
        """A key different from the last one."""
        return next(self._turn)


class OperatorServices:
    """The services as used by the operator: each call is a transaction of its own.

    For example:

        world.operator_services.users.deactivate(person.id)
    """

    def __init__(self, service: "AssembledService", *path: str) -> None:
        self._service, self._path = service, path

    def __getattr__(self, name: str) -> "OperatorServices":
        return OperatorServices(self._service, *self._path, name)

    def __call__(self, *arguments: Any, **members: Any) -> Any:
        """Call the service method that the path names, in a transaction."""
        with self._service.transaction_services() as services:
            use_case = attrgetter(".".join(self._path))(services)
            principal = {"principal": Principal.OPERATOR} if "principal" in signature(use_case).parameters else {}
            return use_case(*arguments, **(principal | members))


class AssembledService:
    """A service with its storage and clock, and methods to inspect it."""

    #: True if new worlds send their requests through the ASGI application.
    asgi: ClassVar[bool] = False

    def __init__(self, settings: Mapping[str, str], *, clock: FakeClock, key_pool: RsaKeyPool) -> None:
        self.settings = dict(settings)
        self._by_asgi = self.asgi
        self.clock = clock
        self.key_pool = key_pool
        self.identity: IdentityApplication = create_application(self.settings, clock=clock)
        self.identity.process_state.hasher.cost = _CheapCost.from_cost(self.identity.process_state.hasher.cost)
        # No background work at unpredictable moments; tests call it where they need it.
        self.identity.background_worker = BackgroundWorker([])

    @cached_property
    def app(self) -> Router:
        """The web application, created on first use, since that takes longer than most service calls."""
        app = create_wsgi_app(self.identity, self.settings)
        app.registry.pages.environment.bytecode_cache = _TEMPLATES
        return app

    @cached_property
    def web_application(self) -> Any:
        """The application that serves requests: WSGI, or with ``--asgi`` the ASGI application."""
        return WsgiToAsgiAdapter(AsgiApplication(self.app)) if self._by_asgi else self.app

    @cached_property
    def client(self) -> ServiceTestClient:
        return ServiceTestClient(TestApp(self.web_application), self.issuer)

    def bootstrap(self) -> None:
        """Create schema, instance and signing key, as far as they are missing."""
        self.identity.backend.migrate()
        bootstrap.run_bootstrap(self.identity)

    @property
    def issuer(self) -> str:
        return self.identity.settings.issuer_url

    @cached_property
    def instance(self) -> Instance:
        """The ids of the instance's own organization and project."""
        with self.read_only_services() as services:
            found = services.storage.organizations.find_instance()
        assert found is not None, "the world was not bootstrapped"
        return found

    @property
    def operator_services(self) -> OperatorServices:
        """The operator's services; each call is a transaction."""
        return OperatorServices(self)

    def transaction_services(self) -> AbstractContextManager[Services]:
        """The operator's services in one transaction, which commits at the end."""
        return self.identity.transaction()

    def read_only_services(self) -> AbstractContextManager[Services]:
        return self.identity.read_session()

    def audience_scope(self, project_id: str | None = None, *, namespace: str = "urn:service:iam") -> str:
        """The scope that adds a project to the audience; by default the service's own project."""
        return AudienceScope.build(project_id or self.instance.project_id, namespace)

    def audit_events(self, **filters: Any) -> tuple[AuditEvent, ...]:
        """Audit events that match the filters, newest first; at most a thousand."""
        with self.read_only_services() as services:
            return services.storage.audit.page(PageRequest(limit=MAX_PAGE_ROWS), AuditFilter(**filters)).items

    def all_audit_events(self) -> Iterable[AuditEvent]:
        """All audit events, newest first."""
        request = PageRequest(limit=MAX_PAGE_ROWS)
        with self.read_only_services() as services:
            while True:
                page = services.storage.audit.page(request)
                yield from page.items
                if page.next_cursor is None:
                    return
                request = PageRequest(limit=MAX_PAGE_ROWS, cursor=page.next_cursor)

    def close(self) -> None:
        self.identity.close()
