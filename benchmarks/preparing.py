"""Sets up, through the service's own services, the users and clients that requests are made of."""

import base64
import json
from pathlib import Path

from pyramid.paster import get_appsettings

from benchmarks.cases import REDIRECT_URI, VISITORS_PASSWORD, Known, Signer, Visitor, authorization
from identity import first_start
from identity.app import assemble
from identity.domain.applications import ApplicationType
from identity.domain.authentication import BY_PASSWORD, PASSWORD, Proof
from identity.domain.users import TokenFormat
from identity.process import Identity
from identity.provider.request import CookieKind
from identity.services.access import THE_OPERATOR
from identity.services.bundle import Services
from identity.services.commands.applications import RegisterApplication
from identity.services.commands.projects import CreateProject
from identity.services.commands.service_users import AddServiceUserKey, CreateServiceUser
from identity.services.commands.users import CreateHumanUser


def prepare(ini: Path, host: str, waiting: int) -> Known:
    """Fill a fresh data folder: what the first start creates, and what ``Known`` holds."""
    identity = assemble(get_appsettings(str(ini)))
    try:
        outcome = first_start.prepare(identity, announce=False)
        assert outcome.client_file is not None  # noqa: S101 - development.ini's first start writes one
        client = json.loads(outcome.client_file.read_text("utf-8"))
        # A hash takes long on a busy machine, and a server ends a transaction that does nothing meanwhile.
        with identity.reading() as services:
            password = services.passwords.hash(VISITORS_PASSWORD)
        with identity.transaction() as services:
            visitor = _add_visitor(services, outcome.organization_id, password)
            sign_ins = [_add_waiting(services, visitor, number) for number in range(waiting)]
        signers = {one: _add_signer(identity, outcome.organization_id, one) for one in TokenFormat}
    finally:
        identity.close()
    return Known(
        issuer=identity.settings.issuer_url,
        host=host,
        opaque=signers[TokenFormat.OPAQUE],
        jwt=signers[TokenFormat.JWT],
        client=_basic(client["client_id"], client["client_secret"]),
        visitor=visitor,
        waiting=sign_ins,
    )


def _add_signer(identity: Identity, organization_id: str, token_format: TokenFormat) -> Signer:
    name = f"benchmark-{token_format}"
    command = CreateServiceUser(user_name=name, display_name=name, access_token_type=token_format)
    with identity.transaction() as services:
        user = services.service_users.create(organization_id, command)
    with identity.transaction() as services:
        file = services.service_users.add_key(user.id, AddServiceUserKey(), by=THE_OPERATOR)
    return Signer(user.id, file.key_id, file.key)


def _add_visitor(services: Services, organization_id: str, password: str) -> Visitor:
    project = services.projects.create(organization_id, CreateProject(name="Benchmark"), by=THE_OPERATOR)
    command = RegisterApplication(
        name="Benchmark",
        type=ApplicationType.WEB,
        redirect_uris=(REDIRECT_URI,),
        response_types=frozenset({"code"}),
        grant_types=frozenset({"authorization_code", "refresh_token"}),
    )
    application, secret = services.applications.register(project.id, command, by=THE_OPERATOR)
    assert secret is not None  # noqa: S101 - web applications have one
    person = CreateHumanUser(user_name="visitor", given_name="Ada", family_name="Example", email="ada@app.example")
    subject = services.storage.users.find_subject(services.users.create(organization_id, person).id)
    assert subject is not None  # noqa: S101 - made just now
    services.passwords.change(subject, password)
    account, shown = services.sessions.sign_in(
        subject, (), proofs=(Proof(PASSWORD, (BY_PASSWORD,), services.now),), user_agent="benchmark"
    )
    asked = authorization(application.id, "openid profile offline_access")
    cookie = _cookie(CookieKind.SESSION, account.session.id, shown)
    return Visitor(cookie, asked, _basic(application.id, secret), subject.login_name)


def _add_waiting(services: Services, visitor: Visitor, number: int) -> tuple[str, str]:
    sign_in, secret = services.sign_ins.begin(visitor.authorization, login_name=f"nobody-{number}")
    return f"/login/{sign_in.id}/password", _cookie(CookieKind.SIGN_IN, sign_in.id, secret)


def _cookie(kind: CookieKind, id_: str, secret: str) -> str:
    """As it is named where the service is plain http."""
    return f"{kind.value}-{id_}={secret}"


def _basic(client_id: str, secret: str) -> str:
    return base64.b64encode(f"{client_id}:{secret}".encode()).decode()
