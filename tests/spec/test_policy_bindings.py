"""Security 18.2: every grant and response type, with each rule that decides about tokens and each binding of tokens.

A binding changes no outcome of a rule, and a rule no binding. The table in ``docs/reference/grants-and-policies.rst``
is made of these expectations.
"""

import csv
import io
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from identity.crypto.secrets import token_digest
from identity.http.environ_keys import PEER_KEY
from identity.services.access_control import Principal
from identity.services.commands.applications import ChangeApplication
from identity.services.commands.policies import ChangePolicy
from identity.testing.fixtures import WorldFactory
from identity.testing.service_test_client import JWT_BEARER, TOKEN_EXCHANGE
from identity.testing.world import World
from tests.plugins.client_certificates import HEADER, PROXY, issue
from tests.plugins.device_authorization.device import DEVICE_CODE
from tests.plugins.dpop_proofs import DpopKey
from tests.spec.test_policy_matrix import (
    ALLOWED,
    GRANTS,
    MEANWHILE,
    OF_INSTANCE,
    TABLE,
    PolicyMatrixScenario,
    expected,
    make_scenario,
    silently,
)

pytestmark = pytest.mark.storages("memory")  # the rules are in the services

FILE = Path(__file__).parents[2] / "docs" / "reference" / "grants_and_policies.csv"
#: Responses with access tokens of applications that require a proof, which a browser cannot bring.
IN_FRONT = dict.fromkeys(("id_token token", "code token", "code id_token token"), "invalid_request")
#: Outcomes if the application requires a proof and the request has none, if they are not "granted".
MISSING_PROOF = {
    **dict.fromkeys(
        ("authorization_code", "refresh_token", "client_credentials", DEVICE_CODE, TOKEN_EXCHANGE), "invalid_request"
    ),
    **IN_FRONT,
}
#: Rules that decide about tokens, with the value that the table describes.
RULES: Mapping[str, str] = {
    "second_factor": "required, user has none",
    "factors": "without the user's",
    "session_idle_age": "exceeded",
    "session_max_age": "exceeded",
    "consent": "always, none given",
}


class ProvingClient:
    """Each token request of the world proves a key, by DPoP or by a certificate that the proxy passes."""

    def __init__(self, world: World, monkeypatch: pytest.MonkeyPatch, binding: str) -> None:
        self._endpoint, self._send, self._key = world.client.discovery["token_endpoint"], world.client.request, None
        if binding == "dpop":
            self._key = DpopKey(world)
            self._key.post(self._endpoint, {"grant_type": "authorization_code"})
        self._certificate = issue(world.clock()).base64
        monkeypatch.setattr(world.client, "request", self.request)
        self.tokens: list[str] = []

    def request(self, method: str, url: str, *, headers: Mapping[str, str] | None = None, **options: Any) -> Any:
        if url != self._endpoint:
            return self._send(method, url, headers=headers, **options)
        proof = {HEADER: self._certificate} if self._key is None else {"DPoP": self._key.proof(url)}
        options["environ"] = {**options.get("environ", {}), PEER_KEY: PROXY}
        answer = self._send(method, url, headers={**(headers or {}), **proof}, **options)
        if answer.status_int == 200:
            self.tokens.append(answer.json["access_token"])
        return answer


@pytest.fixture
def world(make_world: WorldFactory) -> World:
    settings = {
        "identity.authorization_code_lifetime": "10m",
        "identity.trusted_proxy": PROXY,
        "identity.plugin.mutual_tls.certificate_header": HEADER,
    }
    world = make_world(**settings)
    world.operator_services.policies.change(OF_INSTANCE, ChangePolicy.build(**ALLOWED))
    return world


def response_types(world: World) -> list[str]:
    return [item.value for item in world.identity.protocol_registry.response_types.values()]


def observe(scene: PolicyMatrixScenario) -> dict[str, str]:
    found = {item: silently(item)(scene) for item in response_types(scene.world)}
    return found | {name: look(scene) for name, look in GRANTS.items()}


def outcomes(world: World, rule: str | None) -> dict[str, str]:
    """What the rule makes of each response type and grant, whatever the binding."""
    row = expected(world, None if rule is None else TABLE[rule])
    return {
        **{item: row[f"silently {item}"] for item in response_types(world)},
        **{name: row[name] for name in GRANTS},
    }


@pytest.mark.sampled(1)
@pytest.mark.parametrize(
    ("binding", "required"), [("dpop", None), ("mutual_tls", "mutual_tls"), (None, "dpop")], ids=str
)
def test_rules_and_bindings_are_independent(
    world: World, binding: str | None, required: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    refused = {} if required is None else IN_FRONT if binding else MISSING_PROOF
    for rule in (None, *RULES):
        world.clock.reset()
        scene = make_scenario(world)
        if rule is not None:
            change = ChangePolicy.build(**{rule: TABLE[rule].value})
            world.operator_services.policies.change(scene.organization.id, change)
        if required is not None:
            command = ChangeApplication.build(required_sender_constraint=required)
            with world.transaction_services() as services:
                services.applications.change(scene.party.client_id, command, principal=Principal.OPERATOR)
        world.clock.advance(seconds=MEANWHILE.total_seconds())
        right = outcomes(world, rule)
        with monkeypatch.context() as patch:
            client = None if binding is None else ProvingClient(world, patch, binding)
            found = observe(scene)
        assert {name: found[name] for name in right.keys() - refused} == {
            name: right[name] for name in right.keys() - refused
        }, rule
        # Which of two refusals comes first is no part of the table.
        assert all(found[name] != "granted" for name in refused), rule
        assert rule is not None or found == {**right, **refused}
        if client is not None:
            granted = [name for name in GRANTS if found[name] == "granted"]
            bound = [is_bound(world, token, binding) for token in client.tokens]
            # Service users have no setting that requires a certificate.
            assert bound == [binding == "dpop" or name != JWT_BEARER for name in granted], rule


def is_bound(world: World, token: str, binding: str | None) -> bool:
    with world.read_only_services() as services:
        presented = services.storage.tokens.find_access_token(token_digest(token))
    assert presented is not None
    confirmation = presented.token.confirmation
    return confirmation is not None and confirmation.startswith("jkt:" if binding == "dpop" else "x5t#S256:")


def rows(world: World) -> Iterator[list[str]]:
    """The table: first the grants, then the response types."""
    yield [
        "Grant or response type",
        "With a DPoP proof",
        "With a certificate, which is required",
        "Without the required proof",
        *(f"``{rule}``: {value}" for rule, value in RULES.items()),
    ]
    for name in (*GRANTS, *response_types(world)):
        bound = (
            "bound ``DPoP`` token"
            if name in GRANTS
            else "code bound by ``dpop_jkt``"
            if "code" in name.split()
            else "—"
        )
        certified = bound.replace("DPoP", "Bearer") if name in GRANTS else IN_FRONT.get(name, "granted")
        certified = "not bound" if name == JWT_BEARER else certified
        cells = [certified, MISSING_PROOF.get(name, "granted"), *(outcomes(world, rule)[name] for rule in RULES)]
        yield [f"``{name}``", bound, *(f"``{item}``" if "_" in item else item for item in cells)]


def test_documentation_has_the_table(world: World) -> None:
    assert MISSING_PROOF.keys() <= {*GRANTS, *response_types(world)}
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows(rows(world))
    assert FILE.read_text("utf-8") == text.getvalue(), f"{FILE} is not what the tests expect:\n{text.getvalue()}"
