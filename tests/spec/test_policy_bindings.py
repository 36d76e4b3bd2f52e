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

from identity.services.access_control import Principal
from identity.services.commands.applications import ChangeApplication
from identity.services.commands.policies import ChangePolicy
from identity.testing.service_test_client import TOKEN_EXCHANGE
from identity.testing.world import World
from tests.plugins.device_authorization.device import DEVICE_CODE
from tests.plugins.dpop_proofs import DpopKey
from tests.spec.test_policy_matrix import (
    GRANTS,
    MEANWHILE,
    TABLE,
    PolicyMatrixScenario,
    expected,
    make_scenario,
    silently,
)
from tests.spec.test_policy_matrix import world as world

pytestmark = pytest.mark.storages("memory")  # the rules are in the services

FILE = Path(__file__).parents[2] / "docs" / "reference" / "grants_and_policies.csv"
#: Outcomes if the application requires DPoP and the request has no proof, if they are not "granted".
MISSING_PROOF = {
    **dict.fromkeys(
        ("authorization_code", "refresh_token", "client_credentials", DEVICE_CODE, TOKEN_EXCHANGE), "invalid_request"
    ),
    **dict.fromkeys(("id_token token", "code token", "code id_token token"), "invalid_request"),
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
    """While it is entered, each token request of the world proves a key."""

    def __init__(self, world: World, monkeypatch: pytest.MonkeyPatch) -> None:
        self._key, self._endpoint = DpopKey(world), world.client.discovery["token_endpoint"]
        self._key.post(self._endpoint, {"grant_type": "authorization_code"})
        self._send = world.client.request
        monkeypatch.setattr(world.client, "request", self.request)
        #: ``token_type`` of the tokens that were issued.
        self.types: list[str] = []

    def request(self, method: str, url: str, *, headers: Mapping[str, str] | None = None, **options: Any) -> Any:
        if url != self._endpoint:
            return self._send(method, url, headers=headers, **options)
        answer = self._send(method, url, headers={**(headers or {}), "DPoP": self._key.proof(url)}, **options)
        if answer.status_int == 200:
            self.types.append(answer.json["token_type"])
        return answer


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


@pytest.mark.parametrize("binding", ["proof", "missing proof"])
def test_rules_and_bindings_are_independent(world: World, binding: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for rule in (None, *RULES):
        world.clock.reset()
        scene = make_scenario(world)
        if rule is not None:
            change = ChangePolicy.build(**{rule: TABLE[rule].value})
            world.operator_services.policies.change(scene.organization.id, change)
        if binding == "missing proof":
            command = ChangeApplication.build(required_sender_constraint="dpop")
            with world.transaction_services() as services:
                services.applications.change(scene.party.client_id, command, principal=Principal.OPERATOR)
        world.clock.advance(seconds=MEANWHILE.total_seconds())
        right = outcomes(world, rule)
        with monkeypatch.context() as patch:
            client = ProvingClient(world, patch) if binding == "proof" else None
            found = observe(scene)
        if client is not None:
            assert found == right, rule
            granted = [name for name in GRANTS if right[name] == "granted"]
            assert client.types == ["DPoP"] * len(granted), rule
        else:
            # Which of two refusals comes first is no part of the table.
            assert {name: found[name] for name in found if name not in MISSING_PROOF} == {
                name: right[name] for name in found if name not in MISSING_PROOF
            }, rule
            assert all(found[name] != "granted" for name in MISSING_PROOF), rule
            assert rule is not None or found == {**right, **MISSING_PROOF}


def rows(world: World) -> Iterator[list[str]]:
    """The table: first the grants, then the response types."""
    yield [
        "Grant or response type",
        "With a proof",
        "DPoP required, no proof",
        *(f"``{rule}``: {value}" for rule, value in RULES.items()),
    ]
    for name in (*GRANTS, *response_types(world)):
        bound = "``DPoP`` token" if name in GRANTS else "code bound by ``dpop_jkt``" if "code" in name.split() else "—"
        cells = [MISSING_PROOF.get(name, "granted"), *(outcomes(world, rule)[name] for rule in RULES)]
        yield [f"``{name}``", bound, *(item if item == "granted" else f"``{item}``" for item in cells)]


def test_documentation_has_the_table(world: World) -> None:
    assert MISSING_PROOF.keys() <= {*GRANTS, *response_types(world)}
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows(rows(world))
    assert FILE.read_text("utf-8") == text.getvalue(), f"{FILE} is not what the tests expect:\n{text.getvalue()}"
