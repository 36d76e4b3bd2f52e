"""Identity assertions (ID-JAG): what a provider's assertion brings, what ends it, and assertions for other services."""

from typing import Any

import pytest
from pydantic import ValidationError

from identity.domain.applications import ConsentRule
from identity.domain.errors import Invalid
from identity.domain.organizations import Organization
from identity.domain.permissions import Resource
from identity.domain.policies import SecondFactorRule
from identity.domain.projects import Project
from identity.domain.upstream_providers import UpstreamKind, UpstreamProvider
from identity.domain.users import HumanUser
from identity.key_sets import KeySetCache, KeySetClient
from identity.outbound_http import OutboundResponse
from identity.plugins.token_exchange import ACCESS_TOKEN, ID_JAG, ID_TOKEN
from identity.plugins.upstream.account_resolution import AccountResolver
from identity.plugins.upstream.linked_identities import LinkedIdentities
from identity.plugins.upstream.provider_clients import ExternalUser
from identity.services.access_control import Principal
from identity.services.commands.applications import ChangeApplication
from identity.services.commands.policies import ChangePolicy
from identity.services.commands.projects import ChangeProject
from identity.services.commands.upstream_providers import ChangeUpstreamProvider
from identity.testing.fixtures import WorldFactory
from identity.testing.jwt_assertions import OMITTED, decode_jwt_unverified
from identity.testing.response_checks import check_oauth_error, check_token_response
from identity.testing.service_test_client import TOKEN_EXCHANGE, Credentials
from identity.testing.world import World
from tests.plugins.dpop_proofs import DpopKey
from tests.spec.outside_issuer import OutsideIssuer

pytestmark = pytest.mark.storages("memory")

JWT_BEARER = "urn:ietf:params:oauth:grant-type:jwt-bearer"
HOME = "https://home.example.org"
API = "https://api.example.com"
INVALID = "the assertion is not valid"


class Scene:
    """An organization with a person, an application, and a provider at which the person is linked."""

    def __init__(self, world: World, organization: Organization | None = None, **members: Any) -> None:
        self.world, self.organization = world, organization or world.make_organization()
        self.project: Project = world.make_project(self.organization)
        with world.transaction_services() as services:
            services.projects.change(self.project.id, ChangeProject(resource_uris=(API,)), principal=Principal.OPERATOR)
        self.client: Credentials = world.make_web_application(self.project.id)
        self.person: HumanUser = world.make_human_user(self.organization)
        members = {"issuer": HOME, "identity_assertion_clients": (self.client.client_id,)} | members
        self.provider: UpstreamProvider = world.make_upstream_provider(self.organization, **members)
        self.link(self.provider, self.person)
        self.issuer = OutsideIssuer(world, HOME)

    def link(self, provider: UpstreamProvider, person: HumanUser, subject: str = "ada") -> None:
        with self.world.transaction_services() as services:
            external_user = ExternalUser(issuer=HOME, subject=subject, claims={})
            self.links(services).add(provider, external_user, person.id)

    def links(self, services: Any) -> LinkedIdentities:
        return LinkedIdentities(services.record_service(self.world.app.registry.upstream.name_space), services.now)

    def assertion(self, header: Any = None, **changed: Any) -> str:
        usual = {"sub": "ada", "client_id": self.client.client_id, "nbf": OMITTED, "scope": "openid email"}
        return self.issuer.token(header={"typ": "oauth-id-jag+jwt", **(header or {})}, **{**usual, **changed})

    def ask(self, assertion: str | None = None, client: Any = None, **form: str) -> Any:
        parameters = {"grant_type": JWT_BEARER, "assertion": assertion or self.assertion(), **form}
        return self.world.post_token_request(client or self.client, parameters)

    def change(self, **members: Any) -> None:
        with self.world.transaction_services() as services:
            services.upstream_providers.change(
                self.provider.id, ChangeUpstreamProvider.build(**members), principal=Principal.OPERATOR
            )

    def is_live(self, token: str) -> bool:
        return bool(self.world.client.introspect(token, self.client).json["active"])


@pytest.fixture
def scene(world: World) -> Scene:
    return Scene(world)


def refused(answer: Any, description: str, error: str = "invalid_grant") -> None:
    check_oauth_error(answer, error)
    assert description in answer.json["error_description"], answer.json


def test_assertion_brings_a_token_until_it_ends(scene: Scene) -> None:
    world, assertion = scene.world, scene.assertion()
    answer = check_token_response(scene.ask(assertion))
    assert answer.keys() == {"access_token", "token_type", "expires_in", "scope"}, "no refresh token, no ID token"
    assert (answer["expires_in"], answer["scope"]) == (300, "openid email")
    found = world.client.introspect(answer["access_token"], scene.client).json
    assert (found["sub"], found["client_id"]) == (scene.person.id, scene.client.client_id)
    refused(scene.ask(assertion), "used before")
    [event] = world.audit_events(event="identity_assertion.accepted", object_id=scene.person.id)
    assert (event.detail["client_id"], event.detail["provider_id"]) == (scene.client.client_id, scene.provider.id)
    profiles = world.client.discovery["authorization_grant_profiles_supported"]
    assert profiles == ["urn:ietf:params:oauth:grant-profile:id-jag"]
    world.clock.advance(seconds=301)
    assert not scene.is_live(answer["access_token"])


@pytest.mark.parametrize("end", ["unlink", "deactivate", "remove", "list", "person", "revoke"])
def test_token_ends_with_the_link_and_the_provider(scene: Scene, end: str) -> None:
    token = check_token_response(scene.ask())["access_token"]
    assert scene.is_live(token)
    with scene.world.transaction_services() as services:
        providers, principal = services.upstream_providers, Principal.OPERATOR
        if end == "unlink":
            subject = services.storage.users.find_subject(scene.person.id)
            links = scene.links(services)
            [link] = links.list_user_identities(scene.person.id)
            AccountResolver(services, links, scene.provider).unlink_identity(link, subject)
        elif end == "list":
            providers.change(
                scene.provider.id, ChangeUpstreamProvider(identity_assertion_clients=()), principal=principal
            )
        elif end == "person":
            services.users.deactivate(scene.person.id, principal=principal)
        elif end == "revoke":
            services.access_revocations.revoke_application(scene.client.client_id, principal=principal)
        else:
            getattr(providers, end)(scene.provider.id, principal=principal)
    assert not scene.is_live(token)
    if end != "revoke":
        check_oauth_error(scene.ask(), "invalid_grant")


def test_assertions_of_the_service_itself_are_refused(world: World, scene: Scene) -> None:
    """Workload tokens of the own name space are, too."""
    issuer = f"{world.issuer}/realms/own"
    scene.change(issuer=issuer)
    local = OutsideIssuer(world, issuer)
    with world.transaction_services() as services:
        scene.links(services).add(
            scene.provider, ExternalUser(issuer=issuer, subject="ada", claims={}), scene.person.id
        )
    assertion = local.token(
        header={"typ": "oauth-id-jag+jwt"}, sub="ada", client_id=scene.client.client_id, scope="openid"
    )
    refused(scene.ask(assertion), INVALID)
    assert local.requests == []


@pytest.mark.parametrize("change", ["deactivate", "unlist", "mark"])
def test_provider_that_changes_while_its_keys_are_fetched_asserts_nothing(
    scene: Scene, monkeypatch: pytest.MonkeyPatch, change: str
) -> None:
    """Otherwise one that responds slowly gets tokens after its end."""
    answer = scene.issuer.send

    def send(method: str, url: str, **options: Any) -> OutboundResponse:
        if url.endswith("/jwks"):
            if change == "unlist":
                scene.change(identity_assertion_clients=())
            elif change == "mark":
                scene.change(instance_managed=True)
            else:
                with scene.world.transaction_services() as services:
                    services.upstream_providers.deactivate(scene.provider.id, principal=Principal.OPERATOR)
        return answer(method, url, **options)

    monkeypatch.setattr(scene.issuer, "send", send)
    refused(scene.ask(), INVALID)


def test_application_authenticates_and_is_listed(scene: Scene) -> None:
    """Up to the signature all failures look alike."""
    world = scene.world
    stranger = world.make_web_application(scene.project.id)
    public = world.make_public_application(scene.project.id)
    scene.change(identity_assertion_clients=(scene.client.client_id, public))
    for answer in (
        scene.ask(scene.assertion(client_id=stranger.client_id), stranger),
        scene.ask(scene.assertion(iss="https://other.example.org")),
        scene.ask(scene.assertion(iss=OMITTED)),
        scene.ask(scene.assertion()[:-6] + "AAAAAA"),
        scene.ask(scene.assertion(header={"kid": "two"})),
    ):
        refused(answer, INVALID)
    anonymous = world.client.request_token({"grant_type": JWT_BEARER, "assertion": scene.assertion()}, {})
    check_oauth_error(anonymous, "invalid_client", status=401)
    check_oauth_error(scene.ask(scene.assertion(client_id=public), public), "invalid_client", status=401)
    wrong = Credentials(scene.client.client_id, "wrong")
    check_oauth_error(scene.ask(client=wrong), "invalid_client", status=401)


@pytest.mark.parametrize(
    ("changed", "problem"),
    [
        ({"client_id": "0" * 32}, "client_id must be"),
        ({"client_id": OMITTED}, "client_id must be"),
        ({"aud": ["https://id.example.com", "https://x.example"]}, "aud must be"),
        ({"exp": OMITTED}, "exp must be"),
        ({"exp": 10}, "expired"),
        ({"exp": 4102444800}, "exp must be at most"),
        ({"iat": OMITTED}, "iat must be"),
        ({"iat": 4102444800}, "in the future"),
        ({"jti": OMITTED}, "jti must be"),
        ({"sub": "bob"}, "sub names nobody"),
        ({"sub": OMITTED}, "sub must be"),
        ({"scope": ["openid"]}, "scope must be"),
        ({"resource": [1]}, "resource must be"),
        ({"act": {"sub": "robot"}}, "act is not supported"),
        ({"cnf": {"jkt": 1}}, "cnf must name"),
        ({"cnf": {"jkt": "another"}}, "bound to another key"),
    ],
)
def test_refusal_after_the_signature_says_what_to_fix(scene: Scene, changed: dict[str, Any], problem: str) -> None:
    refused(scene.ask(scene.assertion(**changed)), problem)


def test_scope_and_resource_are_those_of_the_assertion_at_most(scene: Scene) -> None:
    answer = check_token_response(scene.ask(scope="openid"))
    assert answer["scope"] == "openid"
    refused(scene.ask(scope="openid profile"), "more than that of the assertion", "invalid_scope")
    assert check_token_response(scene.ask(scene.assertion(scope=OMITTED)))["scope"] == "openid"
    offline = scene.ask(scene.assertion(scope="openid offline_access"))
    assert "refresh_token" not in check_token_response(offline)
    token = check_token_response(scene.ask(scene.assertion(resource=API)))["access_token"]
    audience = scene.world.client.introspect(token, scene.client).json["aud"]
    assert {API, scene.project.id} <= set(audience)
    refused(scene.ask(resource=API), "more than that of the assertion", "invalid_target")
    refused(scene.ask(scene.assertion(resource="https://x.example")), "resource names no API", "invalid_target")
    scene.change(identity_assertion_clients=(f"{scene.client.client_id} {API}",))
    refused(scene.ask(), "identity provider lists", "invalid_target")
    check_token_response(scene.ask(scene.assertion(resource=[API])))


def test_people_of_other_organizations_are_nobody(world: World, scene: Scene) -> None:
    """Unless the provider serves everyone; whom two organizations link is ambiguous."""
    foreigner = world.make_human_user()
    scene.link(scene.provider, foreigner, "eve")
    refused(scene.ask(scene.assertion(sub="eve")), "sub names nobody")
    scene.change(everywhere=True)
    check_token_response(scene.ask(scene.assertion(sub="eve")))
    other = world.make_upstream_provider(issuer=HOME, identity_assertion_clients=(scene.client.client_id,))
    with world.read_only_services() as services:
        organization = services.organizations.get(other.organization_id)
    scene.link(other, world.make_human_user(organization))
    refused(scene.ask(), "sub names nobody")


def test_roles_at_the_instance_need_a_provider_of_the_instance(world: World, scene: Scene) -> None:
    with world.transaction_services() as services:
        services.applications.change(
            scene.client.client_id, ChangeApplication.build(may_manage=True), principal=Principal.OPERATOR
        )
    refused(scene.ask(), "the application belongs to the instance")
    scene.change(instance_managed=True)
    check_token_response(scene.ask())
    scene.change(instance_managed=False)
    with world.transaction_services() as services:
        services.applications.change(
            scene.client.client_id, ChangeApplication.build(may_manage=False), principal=Principal.OPERATOR
        )
    check_token_response(scene.ask())
    world.assign_manager_role(scene.person, "IAM_OWNER_VIEWER", resource=Resource.INSTANCE)
    refused(scene.ask(), "sub names nobody")


def test_second_factor_is_believed_of_trusted_providers(world: World, scene: Scene) -> None:
    with world.transaction_services() as services:
        services.policies.change(scene.organization.id, ChangePolicy(second_factor=SecondFactorRule.REQUIRED))
    strong = {"amr": ["pwd", "otp"], "auth_time": int(world.clock().timestamp()) - 60}
    refused(scene.ask(scene.assertion(**strong)), "second factor")
    scene.change(trust_methods=True)
    refused(scene.ask(scene.assertion(amr=["pwd"])), "second factor")
    check_token_response(scene.ask(scene.assertion(**strong)))


def test_consent_is_asked_for_as_at_a_sign_in(world: World, scene: Scene) -> None:
    client = world.make_web_application(scene.project.id, consent=ConsentRule.ALWAYS)
    scene.change(identity_assertion_clients=(client.client_id,))
    refused(scene.ask(scene.assertion(client_id=client.client_id), client), "has not agreed")


def test_bound_assertion_needs_the_proof_of_its_key(scene: Scene) -> None:
    key, world = DpopKey(scene.world), scene.world
    assertion = scene.assertion(cnf={"jkt": key.thumbprint})
    refused(scene.ask(assertion), "bound to another key")
    form = {"grant_type": JWT_BEARER, "assertion": assertion}
    headers = {"Authorization": scene.client.header}
    answer = key.post(world.client.discovery["token_endpoint"], form, headers)
    assert answer.json["token_type"] == "DPoP", answer.json


def test_provider_without_keys_lists_no_application(world: World) -> None:
    with pytest.raises(Invalid):
        world.make_upstream_provider(
            kind=UpstreamKind.GITHUB, issuer="", identity_assertion_clients=("0123456789abcdef0123456789abcdef",)
        )


# --- assertions for other services ------------------------------------------------------------------------------------


class Giver:
    """A person who signed in to an application, which gets assertions for another service."""

    def __init__(self, world: World, audience: str, client_id: str, *resources: str, **members: Any) -> None:
        self.world, self.organization = world, world.make_organization()
        self.client = world.make_web_application(
            world.make_project(self.organization).id,
            grant_types=frozenset({"authorization_code", "refresh_token", TOKEN_EXCHANGE}),
            identity_assertion_audiences=(" ".join((audience, client_id, *resources)),),
            **members,
        )
        self.audience = audience
        self.session = world.make_browser_session(world.make_human_user(self.organization))
        self.id_token = world.obtain_tokens(self.client, self.session)["id_token"]

    def ask(self, *, client: Any = None, **form: str) -> Any:
        usual = {"grant_type": TOKEN_EXCHANGE, "requested_token_type": ID_JAG, "audience": self.audience}
        usual |= {"subject_token": self.id_token, "subject_token_type": ID_TOKEN}
        return self.world.post_token_request(client or self.client, {**usual, **form})


@pytest.fixture
def giver(world: World) -> Giver:
    return Giver(world, HOME, "there", API)


def test_assertion_for_another_service_names_the_client_there(world: World, giver: Giver) -> None:
    answer = giver.ask(scope="chat.read", resource=API)
    assert answer.status_int == 200, answer.json
    members = answer.json
    assert members.pop("access_token")
    assert members == {
        "issued_token_type": ID_JAG, "token_type": "N_A", "expires_in": 300, "scope": "chat.read"
    }  # fmt: skip
    header, claims = decode_jwt_unverified(answer.json["access_token"])
    assert header["typ"] == "oauth-id-jag+jwt"
    assert (claims["iss"], claims["aud"], claims["client_id"]) == (world.issuer, HOME, "there")
    assert (claims["sub"], claims["resource"], claims["scope"]) == (giver.session.user.id, API, "chat.read")
    assert claims["exp"] - claims["iat"] == 300
    assert claims["amr"] == ["pwd"]
    assert {"jti", "auth_time"} <= claims.keys()
    [event] = world.audit_events(event="identity_assertion.issued", object_id=giver.session.user.id)
    assert (event.detail["client_id"], event.detail["audience"]) == (giver.client.client_id, HOME)
    unlimited = giver.ask().json["access_token"]
    assert decode_jwt_unverified(unlimited)[1]["resource"] == API, "no more than what the application lists"
    # It is no token of this service.
    assert world.client.fetch_userinfo(answer.json["access_token"]).status_int == 401
    assert ID_JAG in world.client.discovery["identity_chaining_requested_token_types_supported"]


def test_assertion_is_given_to_listed_applications_for_their_people_alone(world: World, giver: Giver) -> None:
    for error, form in (
        ("invalid_target", {"audience": "https://elsewhere.example"}),
        ("invalid_target", {"audience": ""}),
        ("invalid_target", {"resource": "https://elsewhere.example"}),
        ("invalid_request", {"subject_token_type": ACCESS_TOKEN}),
        ("invalid_request", {"subject_token": "x"}),
        ("invalid_request", {"actor_token": "x", "actor_token_type": ACCESS_TOKEN}),
    ):
        check_oauth_error(giver.ask(**form), error)
    other = Giver(world, HOME, "there")
    check_oauth_error(other.ask(client=giver.client), "invalid_request")
    check_oauth_error(other.ask(resource=API), "invalid_target")
    guest = world.make_browser_session()
    id_token = world.obtain_tokens(giver.client, guest)["id_token"]
    check_oauth_error(giver.ask(subject_token=id_token), "unauthorized_client")
    with world.transaction_services() as services:
        services.sessions.end_all(services.storage.users.find_subject(other.session.user.id))
    check_oauth_error(other.ask(), "invalid_request")


def test_person_with_a_role_at_the_instance_is_asserted_by_its_applications_alone(world: World, giver: Giver) -> None:
    world.assign_manager_role(giver.session.user, "IAM_OWNER_VIEWER", resource=Resource.INSTANCE)
    session = world.make_browser_session(giver.session.user)
    id_token = world.obtain_tokens(giver.client, session)["id_token"]
    check_oauth_error(giver.ask(subject_token=id_token), "unauthorized_client")


@pytest.mark.parametrize(
    "text", ["http://x.example a", "https://x.example", "https://x.example a b", "x a", "https://x.example  a"]
)
def test_malformed_audience_is_refused(text: str) -> None:
    with pytest.raises(ValidationError):
        ChangeApplication.build(identity_assertion_audiences=(text,))


def test_one_service_gives_what_another_takes(world: World, make_world: WorldFactory) -> None:
    """Cross-app access: the person signed in there, and the application gets a token here."""
    home = make_world(**{"identity.issuer_url": HOME})
    # Each clock stands still at the creation of its world.
    home.clock.advance(world.clock.seconds - home.clock.seconds)
    scene = Scene(world)
    giver = Giver(home, world.issuer, scene.client.client_id, API)
    scene.link(scene.provider, scene.person, giver.session.user.id)

    class HomeDocuments:
        def send(self, method: str, url: str, **_: Any) -> OutboundResponse:
            answer = home.client.request(method, url)
            return OutboundResponse(answer.status_int, answer.body)

    world.identity.process_state.key_sets = KeySetClient(HomeDocuments(), cache=KeySetCache())
    asserted = giver.ask(resource=API, scope="openid email").json["access_token"]
    token = check_token_response(scene.ask(asserted))["access_token"]
    found = world.client.introspect(token, scene.client).json
    assert (found["sub"], found["scope"]) == (scene.person.id, "openid email")
    assert API in found["aud"]
    refused(scene.ask(asserted), "used before")
