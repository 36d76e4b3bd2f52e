"""The console has no settings of plugins that are not listed, unless one is set that may still have an effect."""

from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from identity.clock import now
from identity.domain.applications import Application
from identity.domain.entity import entity_fields
from identity.domain.permissions import Resource
from identity.domain.projects import Project
from identity.plugins.console.fields.applications import APPLICATION_FIELDS
from identity.plugins.console.fields.policies import POLICY_FIELDS
from identity.plugins.console.fields.projects import PROJECT_FIELDS
from identity.plugins.console.fields.service_users import SERVICE_USER_FIELDS
from identity.services.access_control import Principal
from identity.services.commands.projects import ChangeProject
from identity.services.commands.service_users import AddFederatedCredential
from identity.testing.assembled_service import DEFAULT_PLUGINS
from identity.testing.browser import Browser
from identity.testing.fixtures import WorldFactory
from identity.testing.world import World
from tests.plugins.client_certificates import HEADER, PROXY, issue

pytestmark = pytest.mark.storages("memory")  # the plugins matter, not the storage

REGISTRATION = {name for name in entity_fields(Project) if "registration" in name}
CERTIFICATE_NAMES = {name for name in entity_fields(Application) if name.startswith("tls_client_auth")}
#: The fields that are absent without all of these plugins. ``jwks_uri`` is a field of applications and service users.
ABSENT = {
    "dynamic_registration": REGISTRATION,
    "dynamic_registration client_id_metadata_documents": REGISTRATION | {"open_to_dynamic_clients"},
    "resource_indicators": {"resource_uris"},
    "end_session": {"post_logout_redirect_uris"},
    "back_channel_logout": {"backchannel_logout_uri"},
    "front_channel_logout": {"frontchannel_logout_uri"},
    "introspection": {"introspection_signed_response_alg"},
    "pushed_authorization_requests": {"require_pushed_authorization_requests", "security_profile"},
    "request_objects": {"request_object_signing_alg", "require_signed_request_object", "request_uris"},
    "jarm": {"authorization_signed_response_alg", "require_encoded_response"},
    "mutual_tls": CERTIFICATE_NAMES,
    "mutual_tls dpop": CERTIFICATE_NAMES | {"required_sender_constraint", "security_profile"},
    "private_key_jwt mutual_tls": CERTIFICATE_NAMES | {"token_endpoint_auth_signing_alg", "security_profile"},
    "private_key_jwt mutual_tls request_objects": CERTIFICATE_NAMES
    | {"token_endpoint_auth_signing_alg", "security_profile", "jwks", "jwks_uri of applications"}
    | {"request_object_signing_alg", "require_signed_request_object", "request_uris"},
    "token_exchange": {"identity_assertion_audiences"},
    "jwt_bearer": {"jwks_uri of service users"},
    "passkeys": {"passkey_upgrade"},
}
SETTINGS = {
    "mutual_tls": {"certificate_header": HEADER},
    "request_objects": {"by_reference": "true"},
    "client_id_metadata_documents": {"allowed_hosts": "*"},
}
MakeWorld = Callable[[str], World]


@pytest.fixture
def make_world_without(make_world: WorldFactory, tmp_path: Path) -> MakeWorld:
    def make(left_out: str) -> World:
        authorities = tmp_path / "authorities.pem"
        authorities.write_text(issue(now(), subject="CN=Clients,O=Example", is_authority=True).pem)
        listed = [name for name in f"{DEFAULT_PLUGINS} dynamic_registration".split() if name not in left_out.split()]
        settings = {**SETTINGS, "mutual_tls": {**SETTINGS["mutual_tls"], "certificate_authorities": str(authorities)}}
        return make_world(
            **{"identity.plugins": f"memory {' '.join(listed)}", "identity.trusted_proxy": PROXY},
            **{
                f"identity.plugin.{plugin}.{name}": value
                for plugin in settings.keys() & {*listed}
                for name, value in settings[plugin].items()
            },
        )

    return make


def sign_in(world: World) -> Browser:
    browser = Browser(world)
    manager = world.make_human_user()
    world.assign_manager_role(manager, "IAM_OWNER", resource=Resource.INSTANCE)
    browser.start_session(manager)
    return browser


def missing_fields(world: World) -> set[str]:
    """The labelled fields that neither a form for a new entity nor that of the policy has."""
    browser, project = sign_in(world), world.make_project()
    organization = f"/console/organizations/{project.organization_id}"
    forms: Mapping[str, Mapping[str, object]] = {
        f"/console/projects/{project.id}/applications/new?type=web": APPLICATION_FIELDS,
        f"{organization}/projects/new": PROJECT_FIELDS,
        f"{organization}/service-users/new": SERVICE_USER_FIELDS,
        f"{organization}/policy/edit": POLICY_FIELDS,
    }
    missing = set()
    for path, labels in forms.items():
        fields = browser.open(path).forms["page-form"].fields
        missing |= {
            name if name != "jwks_uri" else f"{name} of {path.partition('?')[0].split('/')[-2].replace('-', ' ')}"
            for name in labels
            if not {name, name.removesuffix("s")} & fields.keys()
        }
    return missing


def test_all_fields_are_there_with_all_plugins(make_world_without: MakeWorld) -> None:
    assert missing_fields(make_world_without("")) == set()


@pytest.mark.sampled(3)
@pytest.mark.parametrize("left_out", ABSENT)
def test_form_has_no_fields_of_absent_plugin(make_world_without: MakeWorld, left_out: str) -> None:
    assert missing_fields(make_world_without(left_out)) == ABSENT[left_out]


def test_setting_of_absent_plugin_is_there_while_it_has_a_value(make_world_without: MakeWorld) -> None:
    """With those that belong to it, until it has its default again. Nothing sets one that is not there."""
    world = make_world_without("dynamic_registration client_id_metadata_documents")
    browser, project = sign_in(world), world.make_project()
    path = f"/console/projects/{project.id}"
    assert not {"Who may register", "Open to dynamic clients"} & set(facts(browser, path))
    form = browser.open(f"{path}/edit").forms["page-form"]
    sent = {name: form[name].value for name in ("csrf_token", "version", "name")} | {"open_to_dynamic_clients": "yes"}
    browser.post_form(f"{path}/edit", sent, initiator=browser.login_url)
    assert browser.path == path
    with world.transaction_services() as services:
        assert not services.projects.get(project.id).open_to_dynamic_clients
        command = ChangeProject.decode({"client_registration": "open", "registration_redirect_hosts": ["a.example"]})
        services.projects.change(project.id, command, principal=Principal.OPERATOR)
    assert facts(browser, path)["Who may register"] == "Anyone"
    form = browser.open(f"{path}/edit").forms["page-form"]
    assert {"client_registration", "registration_unused_days"} <= form.fields.keys()
    assert "open_to_dynamic_clients" not in form.fields
    browser.submit({"client_registration": "off", "registration_redirect_hosts": ""}, form="page-form")
    assert "Who may register" not in facts(browser, path)


def test_federated_credentials_are_there_for_a_plugin_or_if_some_are_stored(make_world_without: MakeWorld) -> None:
    world = make_world_without("workload_federation")
    browser, robot = sign_in(world), world.make_service_user_program()
    path = f"/console/service-users/{robot.id}"
    assert "Federated credentials" not in browser.open(path)
    with world.transaction_services() as services:
        command = AddFederatedCredential.build(name="CI", issuer="https://ci.example", conditions=("sub = repo:a",))
        services.federated_credentials.add(robot.id, command, principal=Principal.OPERATOR)
    assert "https://ci.example" in browser.open(path)


def facts(browser: Browser, path: str) -> dict[str, str]:
    """The labels and values of a page."""
    return {item.text: item.find_next("dd").text.strip() for item in browser.open(path).html.select("dt")}
