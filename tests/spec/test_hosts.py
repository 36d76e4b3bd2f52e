"""Decisions, hosts: three host names or one; security 12.1."""

from identity.testing.response_checks import check_api_error, check_token_response
from identity.testing.world import World

ADDRESSES = {
    "issuer": "https://id.example.com",
    "base": "https://api.example.com",
    "login": "https://login.example.com",
}
PATHS = {
    "/.well-known/openid-configuration": "issuer",
    "/oauth/v2/token": "base",
    "/oauth/v2/introspect": "base",
    "/oauth/v2/userinfo": "base",
    "/oauth/v2/revoke": "base",
    "/oauth/v2/keys": "base",
}


def test_endpoint_exists_on_its_host_only(three_host_world: World) -> None:
    for path, home in PATHS.items():
        for host, address in ADDRESSES.items():
            answer = three_host_world.client.get(address + path)
            if host == home:
                assert answer.status_int != 404
            else:
                message = check_api_error(answer, 404, "not_found")["message"]
                assert ADDRESSES[home] in message
                assert f"identity.{home}_url" in message


def test_sign_in_works_across_three_hosts(three_host_world: World) -> None:
    """Tokens name the issuer URL, whatever host serves the endpoint."""
    robot = three_host_world.make_manager_program()
    members = check_token_response(robot.request_token(f"openid {three_host_world.audience_scope()}"))
    answer = three_host_world.client.introspect(members["access_token"], three_host_world.introspector).json
    assert answer["iss"] == "https://id.example.com"
    assert three_host_world.client.fetch_userinfo(members["access_token"]).json["sub"] == robot.id
    instance = three_host_world.client.call_management_api("/instance", members["access_token"]).json
    assert {name: instance[f"{name}_url"] for name in ADDRESSES} == ADDRESSES


def test_unknown_host_page_names_settings(three_host_world: World) -> None:
    for host in (
        "other.example",
        "id.example.com.attacker.example",
        "id.example.com:8443",
        "",
        "id.example.com.",
        "[::1]",
    ):
        for path in ("/.well-known/openid-configuration", "/oauth/v2/token", "/management/v1/me", "/x"):
            for method in ("GET", "POST"):
                answer = three_host_world.client.request(
                    method, f"https://id.example.com{path}", environ={"HTTP_HOST": host}
                )
                assert answer.status_int == 421
                assert answer.content_type == "text/plain"
                for name, address in ADDRESSES.items():
                    assert f"identity.{name}_url" in answer.text
                    assert address in answer.text
                if host:
                    assert host not in answer.text.replace("id.example.com", "")
                assert answer.headers["Cache-Control"] == "no-store"


def test_host_header_is_normalized(three_host_world: World) -> None:
    for host in ("API.EXAMPLE.COM", "api.example.com:443", "Api.Example.Com:443"):
        answer = three_host_world.client.request(
            "GET", "https://api.example.com/oauth/v2/keys", environ={"HTTP_HOST": host}
        )
        assert answer.status_int == 200


def test_forwarding_headers_do_not_select_host(three_host_world: World) -> None:
    for header in ("X-Forwarded-Host", "Forwarded", "X-Original-Host", "X-Host"):
        value = "host=api.example.com" if header == "Forwarded" else "api.example.com"
        assert three_host_world.client.get("https://login.example.com/oauth/v2/keys", {header: value}).status_int == 404


def test_forwarded_address_is_ignored(world: World) -> None:
    """Security 12.1: the address in the audit trail is the connection's."""
    robot = world.make_service_user_program()
    world.client.request_token(
        {"grant_type": "urn:ietf:params:oauth:grant-type:jwt-bearer", "assertion": robot.assertion(aud="x")},
        {"X-Forwarded-For": "203.0.113.9", "Forwarded": "for=203.0.113.9"},
    )
    [event] = world.audit_events(event="authentication.refused", object_id=robot.id)
    assert event.actor.client_address == "192.0.2.1"


def test_probes_answer_on_any_host(three_host_world: World) -> None:
    """Security 9.9: probes use an IP address instead of a host name."""
    for path in ("/healthz", "/readyz"):
        answer = three_host_world.client.request(
            "GET", f"https://id.example.com{path}", environ={"HTTP_HOST": "10.0.0.7:8080"}
        )
        assert answer.status_int == 200
        assert answer.headers["Cache-Control"] == "no-store"
