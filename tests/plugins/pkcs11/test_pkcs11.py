"""Signing keys in a token: SoftHSM of Debian."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pkcs11
import pytest

from identity.crypto.jwt import UnverifiedToken
from identity.domain.permissions import Resource
from identity.domain.signature_algorithms import SignatureAlgorithm
from identity.domain.users import TokenFormat
from identity.plugins.pkcs11 import Pkcs11Settings
from identity.plugins.pkcs11.signer import Pkcs11Signer
from identity.settings_parser import InvalidSetting
from identity.signers import Signer, SignerUnavailable
from identity.testing.browser import Browser
from identity.testing.fixtures import DEFAULT_PLUGINS, WorldFactory
from identity.testing.response_checks import check_token_response
from identity.testing.signer_contract import SignerContract
from identity.testing.world import World
from tests.plugins.pkcs11.softhsm import LABEL, MODULE, PIN, SoftHsm

pytestmark = [
    pytest.mark.skipif(MODULE is None, reason="SoftHSM is not installed: apt-get install softhsm2"),
    # The token does not depend on the storage.
    pytest.mark.storages("memory"),
]

ANNOUNCEMENT = 360


@pytest.fixture
def hsm(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> SoftHsm:
    return SoftHsm(tmp_path, monkeypatch)


def new_signer(hsm: SoftHsm, **changed: Any) -> Pkcs11Signer:
    return Pkcs11Signer(Pkcs11Settings(module=MODULE, token=LABEL, pin_file=hsm.pin_file, **changed))


class TestPkcs11Signer(SignerContract):
    @pytest.fixture
    def make_signer(self, hsm: SoftHsm) -> Callable[[], Signer]:
        return lambda: new_signer(hsm)


def objects(session: Any, class_: pkcs11.ObjectClass) -> list[Any]:
    return list(session.get_objects({pkcs11.Attribute.CLASS: class_}))


def test_private_key_never_leaves_the_token(hsm: SoftHsm) -> None:
    signer = new_signer(hsm)
    for algorithm in SignatureAlgorithm:
        signer.create_key("kid", algorithm, 2048)
    keys = objects(signer._session, pkcs11.ObjectClass.PRIVATE_KEY)
    assert len(keys) == 4
    for key in keys:
        assert key[pkcs11.Attribute.LABEL] == "identity kid"
        assert key[pkcs11.Attribute.SENSITIVE]
        assert not key[pkcs11.Attribute.EXTRACTABLE]
        for use in (pkcs11.Attribute.DECRYPT, pkcs11.Attribute.UNWRAP, pkcs11.Attribute.DERIVE):
            assert not key[use]


def test_spare_keys_are_taken_once(hsm: SoftHsm) -> None:
    generator = new_signer(hsm)
    generated = [generator.create_key("kid", SignatureAlgorithm.ES256, 2048) for _ in range(2)]
    spare = new_signer(hsm, spare_label="identity kid")
    adopted = [spare.create_key(name, SignatureAlgorithm.ES256, 2048) for name in ("one", "two")]
    assert {key.public_key for key in adopted} == {key.public_key for key in generated}
    for algorithm in (SignatureAlgorithm.ES256, SignatureAlgorithm.RS256):
        with pytest.raises(SignerUnavailable, match=f'no key pair with the label "identity kid" for {algorithm}'):
            spare.create_key("three", algorithm, 2048)


def test_spare_key_that_can_be_extracted_is_refused(hsm: SoftHsm) -> None:
    signer = new_signer(hsm, spare_label="spare")
    assert signer.find_problem() is None
    signer._session.generate_keypair(
        pkcs11.KeyType.RSA,
        2048,
        id=b"1",
        label="spare",
        store=True,
        private_template={pkcs11.Attribute.EXTRACTABLE: True},
    )
    with pytest.raises(SignerUnavailable, match="can be extracted"):
        signer.create_key("kid", SignatureAlgorithm.RS256, 2048)


def test_refused_pin_is_not_tried_again(hsm: SoftHsm) -> None:
    """A few wrong attempts lock a token."""
    hsm.pin_file.write_text("0000")
    signer = new_signer(hsm)
    assert "refuses the PIN" in str(signer.find_problem())
    hsm.pin_file.write_text(PIN)
    other = new_signer(hsm)
    assert other.find_problem() is None
    other._session.set_pin(PIN, "0000")
    hsm.pin_file.write_text("0000")
    assert "refuses the PIN" in str(signer.find_problem()), "although it would be right now"
    other._session.set_pin("0000", PIN)
    hsm.pin_file.write_text(PIN)
    assert signer.find_problem() is None


@pytest.mark.parametrize(
    ("break_it", "message"),
    [
        (lambda hsm: hsm.pin_file.chmod(0o644), "is open to others"),
        (lambda hsm: hsm.pin_file.unlink(), "No such file"),
        (lambda hsm: hsm.remove(), "no token with the label identity"),
    ],
)
def test_problem_says_what_to_fix(hsm: SoftHsm, break_it: Callable[[SoftHsm], None], message: str) -> None:
    break_it(hsm)
    assert message in str(new_signer(hsm).find_problem())


@pytest.mark.parametrize(
    ("values", "name"), [({"pin_file": Path("pin")}, "token"), ({"token": "identity"}, "pin_file")]
)
def test_incomplete_settings_are_refused(values: dict[str, Any], name: str) -> None:
    with pytest.raises(InvalidSetting) as refusal:
        Pkcs11Settings(module=MODULE, **values)
    assert refusal.value.key == name


class HsmScenario:
    """A service whose new keys are in the token; its first key is one of software."""

    def __init__(self, make_world: WorldFactory, hsm: SoftHsm) -> None:
        self.hsm = hsm
        settings = {
            "identity.plugins": f"memory {DEFAULT_PLUGINS} pkcs11",
            "identity.signer": "pkcs11",
            "identity.signing_algorithms": "RS256 ES256",
            **hsm.settings,
        }
        self.world: World = make_world(**settings)
        self.robot = self.world.make_service_user_program(token_format=TokenFormat.JWT)

    def announce(self) -> None:
        self.world.identity.background_jobs.rotate_signing_key_if_due()
        self.world.clock.advance(ANNOUNCEMENT)

    def token_key_id(self) -> str:
        """The kid of a new token, whose signature fits the published key."""
        text = check_token_response(self.robot.request_token())["access_token"]
        token = UnverifiedToken.parse(text)
        with self.world.read_only_services() as services:
            keys = {key.id: public for key, public in services.signing_keys.published_keys()}
        token.verify(keys[token.header["kid"]])
        return str(token.header["kid"])

    def key_states(self) -> list[tuple[str, str, str | None]]:
        with self.world.read_only_services() as services:
            states = services.signing_keys.list_key_states()
        return [(state.key.algorithm, str(state.state), state.signer) for state in states]

    def rotate(self) -> str:
        return self.world.operator_services.signing_keys.rotate().id


@pytest.fixture
def scenario(make_world: WorldFactory, hsm: SoftHsm) -> HsmScenario:
    return HsmScenario(make_world, hsm)


def test_service_moves_from_software_keys_to_the_token(scenario: HsmScenario) -> None:
    assert scenario.key_states() == [("RS256", "active", "software")]
    software = scenario.token_key_id()
    scenario.announce()
    key = scenario.rotate()
    assert scenario.token_key_id() == software, "announced first"
    scenario.world.clock.advance(ANNOUNCEMENT)
    assert scenario.token_key_id() == key
    states = [("RS256", "active", "pkcs11"), ("ES256", "active", "pkcs11"), ("RS256", "retired", "software")]
    assert scenario.key_states() == states
    published = scenario.world.client.fetch_jwks().json["keys"]
    assert [(key["alg"], key["kty"]) for key in published] == [("RS256", "RSA"), ("ES256", "EC"), ("RS256", "RSA")]
    assert "signer" not in scenario.world.identity.system_checks.failures()
    owner = scenario.world.make_human_user()
    scenario.world.assign_manager_role(owner, "IAM_OWNER", resource=Resource.INSTANCE)
    browser = Browser(scenario.world)
    browser.start_session(owner)
    browser.open("/console/instance/signing-keys")
    cells = [cell.text for cell in browser.page.html.select(".table__sub")]
    assert cells == ["RS256 · pkcs11", "ES256 · pkcs11", "RS256"]
    [event, *_] = scenario.world.audit_events(event="signing_key.added")
    assert event.detail["signer"] == "pkcs11"


def test_token_that_is_away_means_503_until_it_is_back(scenario: HsmScenario) -> None:
    scenario.announce()
    key = scenario.rotate()
    scenario.world.clock.advance(ANNOUNCEMENT)
    assert scenario.token_key_id() == key
    scenario.hsm.remove()
    # As if another process had taken it away: SoftHSM itself notices nothing.
    pkcs11.lib(str(MODULE)).finalize()
    response = scenario.robot.request_token()
    assert response.status_int == 503
    assert response.json["error"] == "temporarily_unavailable"
    assert "no token with the label identity" in scenario.world.identity.system_checks.failures()["signer"]
    assert "signer: pkcs11" in scenario.world.identity.background_monitor.degradations()
    assert len(scenario.world.client.fetch_jwks().json["keys"]) == 3
    with pytest.raises(SignerUnavailable):
        scenario.world.operator_services.signing_keys.rotate(emergency=True)
    scenario.hsm.insert()
    assert scenario.token_key_id() == key
    assert "signer" not in scenario.world.identity.system_checks.failures()
    assert scenario.world.identity.background_monitor.degradations() == {}


def test_compromised_key_can_be_withdrawn_without_the_token(scenario: HsmScenario) -> None:
    key = scenario.rotate()
    scenario.world.clock.advance(ANNOUNCEMENT)
    scenario.hsm.remove()
    pkcs11.lib(str(MODULE)).finalize()
    assert scenario.world.operator_services.signing_keys.withdraw([key]) == ()
    assert key not in [item["kid"] for item in scenario.world.client.fetch_jwks().json["keys"]]
    scenario.hsm.insert()
    new = scenario.world.operator_services.signing_keys.rotate(emergency=True).id
    scenario.world.clock.advance(31)
    assert scenario.token_key_id() == new


def test_service_without_the_plugin_signs_with_another_key(scenario: HsmScenario) -> None:
    key = scenario.rotate()
    scenario.world.clock.advance(ANNOUNCEMENT)
    assert scenario.token_key_id() == key
    ring = scenario.world.identity.process_state.key_ring
    ring.signers = {name: signer for name, signer in ring.signers.items() if name != "pkcs11"}
    ring.signer = ring.signers["software"]
    ring._private.clear()
    assert scenario.token_key_id() != key
    scenario.announce()
    assert ("RS256", "active", "software") in scenario.key_states()


def test_signer_that_no_plugin_offers_stops_the_start(make_world: WorldFactory) -> None:
    with pytest.raises(InvalidSetting, match="offered: software"):
        make_world(**{"identity.signer": "pkcs11"})
