"""Whom the service knows before anything goes wrong, and what they show."""

import hashlib
import time
import uuid
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlencode

from cryptography.hazmat.primitives.asymmetric.rsa import RSAPrivateKey
from pyramid.paster import get_appsettings

from faults.paths import AUTHORIZE
from identity import first_start
from identity.app import assemble
from identity.testing.assertions import base64url, claims, signed
from identity.testing.clock import RunningClock
from identity.testing.service import KeyPool
from identity.testing.world import CALLBACK, VERIFIER, World

_ASSERTION = "urn:ietf:params:oauth:grant-type:jwt-bearer"


@dataclass(frozen=True)
class Stock:
    """A program with a key, an application with a person who is signed in, an API that introspects, and a manager.

    Each is what its requests show: an Authorization header, or headers.
    """

    issuer: str
    organization_id: str
    audience_scope: str
    robot_id: str
    key_id: str
    key: RSAPrivateKey = field(repr=False)
    application: str = field(repr=False)
    resource_server: str = field(repr=False)
    visitor: dict[str, str] = field(repr=False)
    authorize_path: str = field(repr=False)
    managing: dict[str, str] = field(repr=False)
    token: str = field(repr=False)

    def assertion(self, *, single_use: bool) -> dict[str, str]:
        """The form of a token request with a new assertion, which is good once or as long as it lasts."""
        extra = {"jti": uuid.uuid4().hex} if single_use else {}
        right = claims(self.robot_id, self.issuer, int(time.time()) - 5, **extra)
        assertion = signed({**right, "exp": int(time.time()) + 600}, self.key, key_id=self.key_id)
        return {"grant_type": _ASSERTION, "scope": f"openid {self.audience_scope}", "assertion": assertion}


def code_form(code: str) -> dict[str, str]:
    """The form of a token request with this code."""
    return {
        "grant_type": "authorization_code",
        "code": code,
        "redirect_uri": CALLBACK,
        "code_verifier": VERIFIER,
    }


def prepared(ini: Path) -> Stock:
    """Let a fresh database have all that the load needs."""
    settings = get_appsettings(str(ini))
    identity = assemble(settings)
    try:
        identity.backend.migrate()
        first_start.prepare(identity, announce=False)
    finally:
        identity.close()
    world = World(dict(settings), clock=RunningClock(), key_pool=KeyPool(2))
    try:
        return _stocked(world)
    finally:
        world.close()


def _stocked(world: World) -> Stock:
    manager, robot = world.a_manager(), world.a_robot()
    application, resource_server = world.a_web_application(), world.introspector
    session = world.a_session()
    query = {
        "client_id": application.client_id,
        "redirect_uri": CALLBACK,
        "response_type": "code",
        "scope": "openid offline_access",
        "state": "a-state",
        "code_challenge": base64url(hashlib.sha256(VERIFIER.encode()).digest()),
        "code_challenge_method": "S256",
    }
    return Stock(
        issuer=world.issuer,
        organization_id=manager.organization.id,
        audience_scope=world.audience_scope(),
        robot_id=robot.id,
        key_id=robot.key_id,
        key=robot.key,
        application=application.header,
        resource_server=resource_server.header,
        visitor=session.headers,
        authorize_path=f"{AUTHORIZE}?{urlencode(query)}",
        managing={"Authorization": f"Bearer {manager.managing_token()}"},
        token=robot.managing_token(),
    )
