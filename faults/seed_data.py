"""Users and clients that exist before the fault, and their credentials."""

import hashlib
import time
import uuid
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlencode

from cryptography.hazmat.primitives.asymmetric.rsa import RSAPrivateKey
from pyramid.paster import get_appsettings

from faults.endpoint_paths import AUTHORIZE
from identity import bootstrap
from identity.application_factory import create_application
from identity.testing.assembled_service import RsaKeyPool
from identity.testing.clock import TickingClock
from identity.testing.jwt_assertions import assertion_claims, base64url, sign_assertion
from identity.testing.world import CALLBACK_URI, CODE_VERIFIER, World

_ASSERTION = "urn:ietf:params:oauth:grant-type:jwt-bearer"


@dataclass(frozen=True)
class SeedData:
    """A service user with a key, an application with a signed-in person, an API that introspects, and a manager.

    Each is represented by what its requests contain: an Authorization header, or headers.
    """

    issuer: str
    organization_id: str
    audience_scope: str
    service_user_id: str
    key_id: str
    key: RSAPrivateKey = field(repr=False)
    application: str = field(repr=False)
    resource_server: str = field(repr=False)
    visitor_headers: dict[str, str] = field(repr=False)
    authorize_path: str = field(repr=False)
    management_headers: dict[str, str] = field(repr=False)
    token: str = field(repr=False)

    def assertion(self, *, single_use: bool) -> dict[str, str]:
        """The form of a token request with a new assertion, which is single-use or valid until it expires."""
        extra = {"jti": uuid.uuid4().hex} if single_use else {}
        right = assertion_claims(self.service_user_id, self.issuer, int(time.time()) - 5, **extra)
        assertion = sign_assertion({**right, "exp": int(time.time()) + 600}, self.key, key_id=self.key_id)
        return {"grant_type": _ASSERTION, "scope": f"openid {self.audience_scope}", "assertion": assertion}


def code_form(code: str) -> dict[str, str]:
    return {
        "grant_type": "authorization_code",
        "code": code,
        "redirect_uri": CALLBACK_URI,
        "code_verifier": CODE_VERIFIER,
    }


def create_seed_data(ini: Path) -> SeedData:
    """Create everything that the load needs in a new database."""
    settings = get_appsettings(str(ini))
    identity = create_application(settings)
    try:
        identity.backend.migrate()
        bootstrap.prepare_development(identity, print_getting_started=False)
    finally:
        identity.close()
    world = World(dict(settings), clock=TickingClock(), key_pool=RsaKeyPool(2))
    try:
        return _create_in_world(world)
    finally:
        world.close()


def _create_in_world(world: World) -> SeedData:
    manager, robot = world.make_manager_program(), world.make_service_user_program()
    application, resource_server = world.make_web_application(), world.introspector
    session = world.make_browser_session()
    query = {
        "client_id": application.client_id,
        "redirect_uri": CALLBACK_URI,
        "response_type": "code",
        "scope": "openid offline_access",
        "state": "a-state",
        "code_challenge": base64url(hashlib.sha256(CODE_VERIFIER.encode()).digest()),
        "code_challenge_method": "S256",
    }
    return SeedData(
        issuer=world.issuer,
        organization_id=manager.organization.id,
        audience_scope=world.audience_scope(),
        service_user_id=robot.id,
        key_id=robot.key_id,
        key=robot.key,
        application=application.header,
        resource_server=resource_server.header,
        visitor_headers=session.headers,
        authorize_path=f"{AUTHORIZE}?{urlencode(query)}",
        management_headers={"Authorization": f"Bearer {manager.management_token()}"},
        token=robot.management_token(),
    )
