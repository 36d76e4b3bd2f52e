"""Creates, through the service's own services, the users and clients for the requests."""

import base64
import json
from pathlib import Path

from pyramid.paster import get_appsettings

from benchmarks.request_cases import (
    REDIRECT_URI,
    VISITORS_PASSWORD,
    AssertionSigner,
    RequestFixtures,
    SignedInVisitor,
    authorization_parameters,
)
from identity import bootstrap
from identity.application import IdentityApplication
from identity.application_factory import create_application
from identity.domain.applications import ApplicationType
from identity.domain.authentication import Proof
from identity.domain.users import TokenFormat
from identity.provider.protocol_request import CookieKind
from identity.services.access_control import Principal
from identity.services.commands.applications import RegisterApplication
from identity.services.commands.projects import CreateProject
from identity.services.commands.service_users import AddServiceUserKey, CreateServiceUser
from identity.services.commands.users import CreateHumanUser
from identity.services.container import Services


def create_seed_data(ini: Path, host: str, waiting: int) -> RequestFixtures:
    """Fill a new data folder: bootstrap, and create the contents of ``RequestFixtures``."""
    identity = create_application(get_appsettings(str(ini)))
    try:
        outcome = bootstrap.prepare_development(identity, print_getting_started=False)
        assert outcome.client_file is not None  # noqa: S101 - development.ini's first start writes one
        client = json.loads(outcome.client_file.read_text("utf-8"))
        # Hashing takes long on a busy machine, and a server ends idle transactions.
        with identity.read_session() as services:
            password = services.passwords.hash(VISITORS_PASSWORD)
        with identity.transaction() as services:
            visitor = _add_visitor(services, outcome.organization_id, password)
            sign_ins = [_add_pending_sign_in(services, visitor, number) for number in range(waiting)]
        signers = {
            token_format: _add_signer(identity, outcome.organization_id, token_format) for token_format in TokenFormat
        }
    finally:
        identity.close()
    return RequestFixtures(
        issuer=identity.settings.issuer_url,
        host=host,
        opaque=signers[TokenFormat.OPAQUE],
        jwt=signers[TokenFormat.JWT],
        introspection_credentials=_basic_credentials(client["client_id"], client["client_secret"]),
        visitor=visitor,
        pending_sign_ins=sign_ins,
    )


def _add_signer(identity: IdentityApplication, organization_id: str, token_format: TokenFormat) -> AssertionSigner:
    name = f"benchmark-{token_format}"
    command = CreateServiceUser(user_name=name, display_name=name, access_token_type=token_format)
    with identity.transaction() as services:
        user = services.service_users.create(organization_id, command)
    with identity.transaction() as services:
        file = services.service_users.add_key(user.id, AddServiceUserKey(), principal=Principal.OPERATOR)
    return AssertionSigner(user.id, file.key_id, file.key)


def _add_visitor(services: Services, organization_id: str, password: str) -> SignedInVisitor:
    project = services.projects.create(organization_id, CreateProject(name="Benchmark"), principal=Principal.OPERATOR)
    command = RegisterApplication(
        name="Benchmark",
        type=ApplicationType.WEB,
        redirect_uris=(REDIRECT_URI,),
        response_types=frozenset({"code"}),
        grant_types=frozenset({"authorization_code", "refresh_token"}),
    )
    application, secret = services.applications.register_with_secret(project.id, command, principal=Principal.OPERATOR)
    assert secret is not None  # noqa: S101 - web applications have one
    person = CreateHumanUser(user_name="visitor", given_name="Ada", family_name="Example", email="ada@app.example")
    subject = services.storage.users.find_subject(services.users.create(organization_id, person).id)
    assert subject is not None  # noqa: S101 - made just now
    services.passwords.change(subject, password)
    account, session_secret = services.sessions.start(
        subject,
        (),
        proofs=(Proof(Proof.PASSWORD_FACTOR, (Proof.PASSWORD_METHOD,), services.now),),
        user_agent="benchmark",
    )
    parameters = authorization_parameters(application.id, "openid profile offline_access")
    cookie = _cookie_header(CookieKind.SESSION, account.session.id, session_secret)
    return SignedInVisitor(cookie, parameters, _basic_credentials(application.id, secret), subject.login_name)


def _add_pending_sign_in(services: Services, visitor: SignedInVisitor, number: int) -> tuple[str, str]:
    sign_in, secret = services.sign_ins.begin(visitor.authorization, login_name=f"nobody-{number}")
    return f"/login/{sign_in.id}/password", _cookie_header(CookieKind.SIGN_IN, sign_in.id, secret)


def _cookie_header(kind: CookieKind, id_: str, secret: str) -> str:
    """The cookie name of a service without TLS."""
    return f"{kind.value}-{id_}={secret}"


def _basic_credentials(client_id: str, secret: str) -> str:
    return base64.b64encode(f"{client_id}:{secret}".encode()).decode()
