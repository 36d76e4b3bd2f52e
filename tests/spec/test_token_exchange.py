"""Token exchange (RFC 8693): who may exchange what, what comes out, what ends it, and acting as a person."""

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from identity.domain.applications import ConsentRule
from identity.domain.audit import AuditEvent, AuditFilter
from identity.domain.organizations import Organization
from identity.domain.permissions import Resource
from identity.domain.projects import Project
from identity.domain.tokens import AccessToken
from identity.domain.users import HumanUser
from identity.plugins.token_exchange import ACCESS_TOKEN, ID_TOKEN, JWT, TokenExchangeGrant
from identity.services.access_control import Principal
from identity.testing.jwt_assertions import decode_jwt_unverified
from identity.testing.response_checks import check_oauth_error, check_token_response
from identity.testing.service_test_client import TOKEN_EXCHANGE, Credentials
from identity.testing.world import BrowserSession, World
from tests.plugins.dpop_proofs import DpopKey

pytestmark = pytest.mark.storages("memory")

USER_ID = "urn:service:iam:token-type:user_id"
GRANT_TYPES = frozenset({TOKEN_EXCHANGE, "client_credentials"})


@pytest.fixture
def organization(world: World) -> Organization:
    return world.make_organization()


@pytest.fixture
def project(world: World, organization: Organization) -> Project:
    return world.make_project(organization)


@pytest.fixture
def session(world: World, organization: Organization) -> BrowserSession:
    return world.make_browser_session(world.make_human_user(organization))


@pytest.fixture
def page(world: World, project: Project) -> Credentials:
    """The application to which the user signs in."""
    return world.make_web_application(project.id)


@pytest.fixture
def gateway(world: World, project: Project) -> Credentials:
    """The application that receives the token and exchanges it."""
    return world.make_application(project.id, grant_types=GRANT_TYPES)


@pytest.fixture
def token(world: World, page: Credentials, session: BrowserSession) -> str:
    return str(world.obtain_tokens(page, session, scope="openid email")["access_token"])


def exchange(
    world: World, client: Any, token: str, *targets: str, kind: str = ACCESS_TOKEN, **parameters: str | None
) -> Any:
    form = {"grant_type": TOKEN_EXCHANGE, "subject_token": token, "subject_token_type": kind, **parameters}
    pairs = [(name, value) for name, value in form.items() if value is not None]
    return world.client.request_token(
        [*pairs, *(("audience", target) for target in targets)], {"Authorization": client.header}
    )


def exchanged(world: World, client: Any, token: str, *targets: str, **parameters: Any) -> str:
    return str(check_token_response(exchange(world, client, token, *targets, **parameters))["access_token"])


def introspection(world: World, token: str, client: Credentials) -> dict[str, Any]:
    answer: dict[str, Any] = world.client.introspect(token, client).json
    return answer


def actor_token(world: World, client: Credentials) -> dict[str, str]:
    answer = check_token_response(world.post_token_request(client, {"grant_type": "client_credentials"}))
    return {"actor_token": answer["access_token"], "actor_token_type": ACCESS_TOKEN}


def test_exchange_narrows_scope_audience_and_lifetime(
    world: World, page: Credentials, gateway: Credentials, session: BrowserSession, project: Project
) -> None:
    tokens = world.obtain_tokens(page, session, scope="openid email offline_access")
    world.clock.advance(seconds=tokens["expires_in"] - 60)
    answer = check_token_response(exchange(world, gateway, tokens["access_token"]))
    assert answer.keys() == {"access_token", "issued_token_type", "token_type", "expires_in", "scope"}
    assert (answer["issued_token_type"], answer["expires_in"]) == (ACCESS_TOKEN, 60)
    assert answer["scope"] == "openid email"
    found = introspection(world, answer["access_token"], gateway)
    # The client id was not in the audience of the token that went in.
    assert (found["sub"], found["client_id"], found["aud"]) == (session.user.id, gateway.client_id, [project.id])
    assert found["amr"] == ["pwd"]
    assert "act" not in found
    narrowed = check_token_response(exchange(world, gateway, tokens["access_token"], project.id, scope="email"))
    assert narrowed["scope"] == "email"


def test_actor_token_puts_its_subject_before_earlier_actors(
    world: World, gateway: Credentials, project: Project, token: str
) -> None:
    next_service = world.make_application(project.id, grant_types=GRANT_TYPES)
    first = exchanged(world, gateway, token, **actor_token(world, gateway))
    second = exchanged(world, next_service, first, **actor_token(world, next_service))
    narrowed = exchanged(world, gateway, second)
    chain = {"sub": next_service.client_id, "act": {"sub": gateway.client_id}}
    assert [introspection(world, item, gateway)["act"] for item in (second, narrowed)] == [chain, chain]


def test_jwt_is_issued_to_applications_that_get_jwts(world: World, project: Project, token: str) -> None:
    jwt_client = world.make_application(project.id, grant_types=GRANT_TYPES, access_token_type="jwt")
    answer = check_token_response(
        exchange(world, jwt_client, token, requested_token_type=JWT, **actor_token(world, jwt_client))
    )
    assert answer["issued_token_type"] == JWT
    assert decode_jwt_unverified(answer["access_token"])[1]["act"] == {"sub": jwt_client.client_id}
    again = exchanged(world, jwt_client, answer["access_token"], kind=JWT)
    assert introspection(world, again, jwt_client)["active"]


def test_what_does_not_fit_is_refused(
    world: World, page: Credentials, gateway: Credentials, token: str, session: BrowserSession
) -> None:
    stranger = world.make_application(grant_types=GRANT_TYPES)
    for_itself = actor_token(world, gateway)["actor_token"]
    acting = exchanged(world, gateway, token, **actor_token(world, gateway))
    refused = "invalid_request"
    for error, client, sent, parameters in (
        (refused, stranger, token, {}),
        (refused, gateway, token[:-1], {}),
        # It is about no user, and would become the gateway's own.
        (refused, gateway, for_itself, {}),
        (refused, gateway, token, {"kind": JWT}),
        (refused, gateway, token, {"kind": "urn:ietf:params:oauth:token-type:saml2"}),
        (refused, gateway, token, {"requested_token_type": ID_TOKEN}),
        (refused, gateway, token, {"requested_token_type": JWT}),
        (refused, gateway, token, {"actor_token": for_itself}),
        (refused, gateway, token, {"actor_token_type": ACCESS_TOKEN}),
        (refused, gateway, token, {"actor_token": for_itself, "actor_token_type": ID_TOKEN}),
        (refused, gateway, token, {"actor_token": acting, "actor_token_type": ACCESS_TOKEN}),
        (refused, gateway, token, actor_token(world, stranger)),
        ("invalid_scope", gateway, token, {"scope": "openid profile"}),
        ("invalid_target", gateway, token, {"resource": "https://a.example"}),
        ("invalid_target", gateway, token, {"audience": page.client_id}),
        ("invalid_target", gateway, token, {"audience": world.instance.project_id}),
    ):
        check_oauth_error(exchange(world, client, sent, **parameters), error)


@pytest.mark.storages("memory", "sqlite")
@pytest.mark.parametrize(
    "end", ["revoked", "family revoked", "actor revoked", "signed out", "application deactivated", "disconnected"]
)
def test_exchanged_token_ends_with_what_it_was_exchanged_from(
    world: World, page: Credentials, gateway: Credentials, session: BrowserSession, project: Project, end: str
) -> None:
    tokens, last = world.obtain_tokens(page, session), world.make_application(project.id, grant_types=GRANT_TYPES)
    actor = actor_token(world, gateway)
    middle = exchanged(world, gateway, tokens["access_token"], **actor)
    token = exchanged(world, last, middle)
    assert introspection(world, token, gateway)["active"]
    assert world.client.fetch_userinfo(token).status_int == 200
    if end == "revoked":
        world.client.revoke(tokens["access_token"], page)
    elif end == "family revoked":
        world.client.revoke(tokens["refresh_token"], page)
    elif end == "actor revoked":
        world.client.revoke(actor["actor_token"], gateway)
    else:
        with world.transaction_services() as services:
            subject = services.storage.users.find_subject(session.user.id)
            assert subject is not None
            if end == "signed out":
                services.sessions.end_all(subject)
            elif end == "disconnected":
                services.storage.tokens.revoke_for_user(subject.user.id, services.now, client_id=last.client_id)
            else:
                services.applications.deactivate(page.client_id, principal=Principal.OPERATOR)
    assert not introspection(world, token, gateway)["active"]
    assert world.client.fetch_userinfo(token).status_int == 401


def test_tokens_are_exchanged_from_a_limited_number_of_others(world: World, gateway: Credentials, token: str) -> None:
    for _ in range(AccessToken.MAX_ANCESTORS):
        token = exchanged(world, gateway, token)
    check_oauth_error(exchange(world, gateway, token), "invalid_request")


@pytest.mark.every_storage
@pytest.mark.thorough
def test_exchange_that_races_with_a_revocation_leaves_no_live_token(
    world: World, page: Credentials, gateway: Credentials, token: str
) -> None:
    def act(number: int) -> str | None:
        # A serializable transaction can be refused when others are in its way.
        if number == 50:
            while world.client.revoke(token, page).status_int == 503:
                pass
            return None
        answer = exchange(world, gateway, token)
        assert answer.status_int in {200, 400, 503}, answer
        return None if answer.status_int != 200 else str(answer.json["access_token"])

    with ThreadPoolExecutor(8) as threads:
        found = [item for item in threads.map(act, range(100)) if item is not None]
    assert found
    assert not any(introspection(world, item, gateway)["active"] for item in found)


def test_id_token_stands_for_openid_at_its_client_while_its_session_lasts(
    world: World, project: Project, gateway: Credentials, session: BrowserSession
) -> None:
    party = world.make_web_application(
        project.id, grant_types=frozenset({"authorization_code", "refresh_token", TOKEN_EXCHANGE})
    )
    id_token = world.obtain_tokens(party, session, scope="openid email offline_access")["id_token"]
    answer = check_token_response(exchange(world, party, id_token, kind=ID_TOKEN))
    assert answer["scope"] == "openid"
    check_oauth_error(exchange(world, party, id_token, kind=ID_TOKEN, scope="openid email"), "invalid_scope")
    check_oauth_error(exchange(world, gateway, id_token, kind=ID_TOKEN), "invalid_request")
    check_oauth_error(exchange(world, party, id_token), "invalid_request")
    with world.transaction_services() as services:
        subject = services.storage.users.find_subject(session.user.id)
        assert subject is not None
        services.sessions.end_all(subject)
    check_oauth_error(exchange(world, party, id_token, kind=ID_TOKEN), "invalid_request")
    assert not introspection(world, answer["access_token"], party)["active"]
    fresh = world.obtain_tokens(party, world.make_browser_session(session.user))["id_token"]
    world.clock.advance(hours=13)
    check_oauth_error(exchange(world, party, fresh, kind=ID_TOKEN), "invalid_request")


def test_id_token_ends_with_the_connection_to_its_client(
    world: World, project: Project, session: BrowserSession
) -> None:
    """Nothing else of it is stored that could be revoked."""
    party = world.make_web_application(project.id, grant_types=frozenset({"authorization_code", TOKEN_EXCHANGE}))
    id_token = world.obtain_tokens(party, session, scope="openid")["id_token"]
    check_token_response(exchange(world, party, id_token, kind=ID_TOKEN))
    world.operator_services.access_revocations.revoke_application(party.client_id)
    check_oauth_error(exchange(world, party, id_token, kind=ID_TOKEN), "invalid_request")
    world.obtain_tokens(party, session, scope="openid")
    check_token_response(exchange(world, party, id_token, kind=ID_TOKEN))


def test_id_token_opens_no_management_api(
    world: World, organization: Organization, project: Project, session: BrowserSession
) -> None:
    """Nor another project, by any parameter: the person allowed openid alone."""
    party = world.make_web_application(
        project.id, may_manage=True, grant_types=frozenset({"authorization_code", TOKEN_EXCHANGE})
    )
    other = world.make_project(organization)
    id_token = world.obtain_tokens(party, session, scope="openid")["id_token"]
    for name, target in (
        ("resource", world.client.management_url),
        ("resource", f"urn:service:iam:org:project:id:{other.id}"),
        ("audience", world.instance.project_id),
        ("audience", other.id),
    ):
        check_oauth_error(exchange(world, party, id_token, kind=ID_TOKEN, **{name: target}), "invalid_target")
    check_token_response(exchange(world, party, id_token, project.id, kind=ID_TOKEN))


def test_consent_is_needed_as_at_a_sign_in(world: World, page: Credentials, project: Project, token: str) -> None:
    asking = world.make_application(project.id, grant_types=GRANT_TYPES, consent=ConsentRule.ALWAYS)
    check_oauth_error(exchange(world, asking, token), "invalid_grant")


def test_what_comes_from_a_bound_token_is_bound(world: World, gateway: Credentials, token: str) -> None:
    key = DpopKey(world)

    def request(sent: str, **actor: str) -> Any:
        form = {"grant_type": TOKEN_EXCHANGE, "subject_token": sent, "subject_token_type": ACCESS_TOKEN, **actor}
        return key.post(world.client.discovery["token_endpoint"], form, {"Authorization": gateway.header})

    bound = request(token).json["access_token"]
    actor = {"actor_token": bound, "actor_token_type": ACCESS_TOKEN}
    for sent, parameters in ((bound, {}), (token, actor)):
        assert exchange(world, gateway, sent, **parameters).status_int == 400
        assert request(sent, **parameters).json["token_type"] == "DPoP"


# --- acting as a person ---


@pytest.fixture
def manager(world: World, organization: Organization) -> HumanUser:
    person = world.make_human_user(organization)
    world.assign_manager_role(person, "ORG_OWNER")
    return person


@pytest.fixture
def support(world: World, project: Project) -> Credentials:
    """The application of managers, which acts for them."""
    return world.make_web_application(
        project.id,
        may_manage=True,
        grant_types=frozenset({"authorization_code", "refresh_token", TOKEN_EXCHANGE}),
    )


def managing(world: World, support: Credentials, manager: HumanUser, scope: str = "openid email") -> dict[str, str]:
    """The actor token of the manager, and a reason."""
    with world.transaction_services() as services:
        subject, client = (
            services.storage.users.find_subject(manager.id),
            services.applications.find_client(support.client_id),
        )
        assert subject is not None
        assert client is not None
        services.consents.grant_consent(subject, client, (*scope.split(), world.audience_scope()))
    scope = f"{scope} {world.audience_scope()}"
    token = world.obtain_tokens(support, world.make_browser_session(manager), scope=scope)["access_token"]
    return {"actor_token": token, "actor_token_type": ACCESS_TOKEN, "reason": "Order 7 is stuck"}


def test_manager_acts_as_a_person_for_a_quarter_of_an_hour(
    world: World, support: Credentials, manager: HumanUser, session: BrowserSession
) -> None:
    person = session.user
    actor = managing(world, support, manager)
    answer = check_token_response(exchange(world, support, person.id, kind=USER_ID, **actor))
    assert (answer["expires_in"], answer["scope"]) == (15 * 60, "openid email")
    found = introspection(world, answer["access_token"], support)
    assert (found["sub"], found["act"]) == (person.id, {"sub": manager.id})
    assert "amr" not in found
    assert world.instance.project_id not in found["aud"]
    assert world.client.call_management_api("/me", answer["access_token"]).status_int == 401
    [event] = list_events(world, person, AuditEvent.IMPERSONATION_STARTED)
    assert (event.actor.id, event.actor.client_id) == (manager.id, support.client_id)
    assert event.detail["reason"] == actor["reason"]
    world.client.revoke(actor["actor_token"], support)
    assert not introspection(world, answer["access_token"], support)["active"]


def list_events(world: World, person: HumanUser, name: str) -> list[AuditEvent]:
    with world.read_only_services() as services:
        found = services.audit_trail.page(AuditFilter(object_id=person.id)).items
    return [event for event in found if event.event == name]


def test_acting_as_a_person_obeys_the_rules_of_impersonation(
    world: World, support: Credentials, manager: HumanUser, session: BrowserSession, organization: Organization
) -> None:
    person, actor, wrong = session.user, managing(world, support, manager), "invalid_request"
    stronger, robot = world.make_human_user(organization), world.make_service_user_program(organization)
    world.assign_manager_role(stronger, "IAM_OWNER", resource=Resource.INSTANCE)
    unable = managing(world, support, world.make_human_user(organization))
    plain = replace_token(actor, world.obtain_tokens(support, world.make_browser_session(manager), scope="openid"))
    asking = ("the management audience itself", {"scope": f"openid {world.audience_scope()}"}, "invalid_scope")
    for why, target, parameters, error in (
        ("no reason", person.id, {**actor, "reason": None}, wrong),
        ("two lines", person.id, {**actor, "reason": "a\nb"}, wrong),
        ("no actor", person.id, {"reason": "x"}, wrong),
        ("nobody", "no-such-user", actor, wrong),
        ("oneself", manager.id, actor, wrong),
        ("a program", robot.id, actor, wrong),
        ("more rights", stronger.id, actor, wrong),
        ("another organization", world.make_human_user().id, actor, wrong),
        ("no permission", person.id, unable, wrong),
        ("a token that is not for managing", person.id, plain, wrong),
        (asking[0], person.id, {**actor, **asking[1]}, asking[2]),
    ):
        answer = exchange(world, support, target, kind=USER_ID, **parameters)
        assert answer.status_int == 400, why
        check_oauth_error(answer, error)
    assert list_events(world, person, AuditEvent.IMPERSONATION_STARTED) == []


def replace_token(parameters: dict[str, str], tokens: dict[str, Any]) -> dict[str, str]:
    return {**parameters, "actor_token": tokens["access_token"]}


def test_application_that_may_not_manage_acts_as_nobody(
    world: World, support: Credentials, gateway: Credentials, manager: HumanUser, session: BrowserSession
) -> None:
    """Though it is in the audience of the manager's token."""
    actor = managing(world, support, manager)
    check_oauth_error(exchange(world, gateway, session.user.id, kind=USER_ID, **actor), "invalid_request")


def test_manager_acts_as_nobody_after_signing_out(
    world: World, support: Credentials, manager: HumanUser, session: BrowserSession
) -> None:
    actor = managing(world, support, manager)
    with world.transaction_services() as services:
        subject = services.storage.users.find_subject(manager.id)
        assert subject is not None
        services.sessions.end_all(subject)
    check_oauth_error(exchange(world, support, session.user.id, kind=USER_ID, **actor), "invalid_request")


def test_any_exchange_is_answered(world: World, gateway: Credentials, token: str) -> None:
    texts = st.text(max_size=30) | st.sampled_from([token, ACCESS_TOKEN, ID_TOKEN, JWT, USER_ID, "openid", "a.b.c"])

    @settings(max_examples=60, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
    @given(st.dictionaries(st.sampled_from(sorted(TokenExchangeGrant.parameters | {"scope"})), texts))
    def check(parameters: dict[str, str]) -> None:
        answer = world.post_token_request(gateway, {"grant_type": TOKEN_EXCHANGE, **parameters})
        assert answer.status_int in (200, 400), answer

    check()
