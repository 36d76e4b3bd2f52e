"""identity_client checks access tokens: signature, type, issuer, audience, times, roles and revocation."""

import asyncio
import base64
import hmac
import json
import threading
import time
from collections.abc import Callable
from typing import Any

import httpx
import pytest
from hypothesis import given
from hypothesis import strategies as st
from identity_client import (
    AccessToken,
    AsyncIdentityClient,
    IdentityClient,
    IdentityError,
    InvalidToken,
    MissingRole,
    Unavailable,
)
from identity_client.testing import TestIssuer, role_claim, signing_key
from joserfc import jwt
from joserfc.jwk import OKPKey, RSAKey

PROJECT = "0198-project"


@pytest.fixture
def client(identity_issuer: TestIssuer) -> IdentityClient:
    return IdentityClient(identity_issuer.url, project_id=PROJECT)


@pytest.fixture
def introspecting(identity_issuer: TestIssuer) -> IdentityClient:
    return IdentityClient(identity_issuer.url, project_id=PROJECT, client_id="api", client_secret="secret")


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Callable[[float], None]:
    """Moves both clocks forward."""
    offset, monotonic, wall = [0.0], time.monotonic, time.time
    monkeypatch.setattr(time, "monotonic", lambda: monotonic() + offset[0])
    monkeypatch.setattr(time, "time", lambda: wall() + offset[0])

    def advance(seconds: float) -> None:
        offset[0] += seconds

    return advance


def paths(issuer: TestIssuer) -> list[str]:
    return [request.url.path for request in issuer.requests]


def encoded(issuer: TestIssuer, claims: dict[str, Any], header: dict[str, Any] | None = None) -> str:
    """A token signed by the issuer with other claims or header parameters; None leaves one out."""
    now = int(time.time())
    members = {"iss": issuer.url, "aud": [PROJECT], "sub": "user", "iat": now, "exp": now + 60} | claims
    parameters = {"alg": "RS256", "kid": "test", "typ": "at+jwt"} | (header or {})
    return jwt.encode(
        {name: value for name, value in parameters.items() if value is not None},
        {name: value for name, value in members.items() if value is not None},
        RSAKey.import_key(signing_key().as_pem(private=True)),
        algorithms=["RS256", "RS512"],
    )


def test_jwt_is_verified_without_asking_the_service(identity_issuer: TestIssuer, client: IdentityClient) -> None:
    token = client.check_access_token(identity_issuer.access_token(PROJECT, subject="anna", scope="openid profile"))
    assert (token.subject, token.scopes, token.project_id) == ("anna", {"openid", "profile"}, PROJECT)
    client.check_access_token(identity_issuer.access_token(PROJECT))
    assert paths(identity_issuer) == ["/.well-known/openid-configuration", "/oauth/v2/keys"]


@pytest.mark.parametrize(
    "claims",
    [
        {"iss": "https://other.test"},
        {"iss": None},
        {"aud": ["0199-other"]},
        {"aud": None},
        {"aud": []},
        {"aud": PROJECT + "x"},
        {"sub": None},
        {"sub": ""},
        {"exp": None},
        {"exp": 1_700_000_000},
        {"exp": "4000000000"},
        {"exp": True},
        {"exp": float("nan")},
        {"exp": float("inf")},
        {"nbf": 4_000_000_000},
        {"iat": 4_000_000_000},
        # Bound to a key (RFC 9449 §6.1), of which a bearer proves nothing; whatever it is.
        {"cnf": {"jkt": "0ZcOCORZNYy-DWpqq30jZyJGHTN0d2HglBV3uiguA4I"}},
        {"cnf": {}},
    ],
    ids=str,
)
def test_claims_that_are_refused(identity_issuer: TestIssuer, client: IdentityClient, claims: dict[str, Any]) -> None:
    client.check_access_token(encoded(identity_issuer, {}))
    with pytest.raises(InvalidToken):
        client.check_access_token(encoded(identity_issuer, claims))


@pytest.mark.parametrize(
    "header",
    [
        {"typ": "JWT"},
        {"typ": None},
        {"kid": None},
        {"kid": "unknown"},
        {"alg": "RS512"},
        {"crit": ["b64"], "b64": True},
    ],
    ids=str,
)
def test_headers_that_are_refused(identity_issuer: TestIssuer, client: IdentityClient, header: dict[str, Any]) -> None:
    with pytest.raises(InvalidToken):
        client.check_access_token(encoded(identity_issuer, {}, header))


def test_signatures_that_are_refused(identity_issuer: TestIssuer, client: IdentityClient) -> None:
    token = identity_issuer.access_token(PROJECT)
    header, payload, signature = token.split(".")
    forged = base64.urlsafe_b64encode(json.dumps({"alg": "none", "kid": "test", "typ": "at+jwt"}).encode()).decode()
    foreign = RSAKey.generate_key(2048)
    parts = {"alg": "HS256", "kid": "test", "typ": "at+jwt"}
    symmetric = base64.urlsafe_b64encode(json.dumps(parts).encode()).decode().rstrip("=")
    # The public key as the secret of an HMAC.
    mac = hmac.digest(signing_key().as_pem(private=False), f"{symmetric}.{payload}".encode(), "sha256")
    parameters = {"kid": "test", "typ": "at+jwt"}
    claims = jwt.decode(token, signing_key(), algorithms=["RS256"]).claims
    for bad in (
        f"{header}.{payload}.",
        f"{header}.{payload}.{'A' * len(signature)}",
        f"{forged.rstrip('=')}.{payload}.",
        f"{forged.rstrip('=')}.{payload}.{signature}",
        jwt.encode({"alg": "RS256", **parameters}, claims, foreign),
        f"{symmetric}.{payload}.{base64.urlsafe_b64encode(mac).decode().rstrip('=')}",
    ):
        with pytest.raises(InvalidToken):
            client.check_access_token(bad)


@given(
    st.text(max_size=300) | st.binary(max_size=60).map(lambda data: base64.urlsafe_b64encode(data).decode() + ".e30.")
)
def test_any_text_is_an_invalid_token(text: str) -> None:
    issuer = TestIssuer()
    client = IdentityClient(issuer.url, project_id=PROJECT)
    client.send = issuer.respond  # type: ignore[method-assign]
    with pytest.raises(InvalidToken):
        client.check_access_token(text)


def test_deep_header_is_an_invalid_token(client: IdentityClient) -> None:
    header = base64.urlsafe_b64encode(b"[" * 9000).decode().rstrip("=")
    with pytest.raises(InvalidToken):
        client.check_access_token(f"{header}.e30.AAAA")


def test_client_without_a_project_accepts_no_token(identity_issuer: TestIssuer) -> None:
    with pytest.raises(InvalidToken):
        IdentityClient(identity_issuer.url).check_access_token(encoded(identity_issuer, {"aud": ""}))


def test_unknown_key_ids_cause_one_request_a_minute(
    identity_issuer: TestIssuer, client: IdentityClient, clock: Callable[[float], None]
) -> None:
    client.check_access_token(identity_issuer.access_token(PROJECT))
    del identity_issuer.requests[:]
    for _ in range(5):
        with pytest.raises(InvalidToken):
            client.check_access_token(encoded(identity_issuer, {}, {"kid": "invented"}))
    assert identity_issuer.requests == []
    clock(61)
    for name in "abc":
        with pytest.raises(InvalidToken):
            client.check_access_token(encoded(identity_issuer, {}, {"kid": name}))
    assert paths(identity_issuer).count("/oauth/v2/keys") == 1


def test_keys_are_fetched_each_hour_and_used_a_day_if_they_cannot_be(
    identity_issuer: TestIssuer, client: IdentityClient, clock: Callable[[float], None]
) -> None:
    token = identity_issuer.access_token(PROJECT, lifetime=10**6)
    client.check_access_token(token)
    clock(3601)
    identity_issuer.is_available = False
    client.check_access_token(token)
    count = len(identity_issuer.requests)
    client.check_access_token(token)
    assert len(identity_issuer.requests) == count == 3, "a failed refresh is not repeated at each token"
    clock(23 * 3600)
    with pytest.raises(Unavailable):
        client.check_access_token(token)
    clock(2)
    identity_issuer.is_available = True
    client.check_access_token(token)


def test_threads_share_one_refresh(identity_issuer: TestIssuer, client: IdentityClient) -> None:
    token = identity_issuer.access_token(PROJECT)
    threads = [threading.Thread(target=client.check_access_token, args=(token,)) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert paths(identity_issuer).count("/oauth/v2/keys") == 1


def test_tasks_share_one_refresh(identity_issuer: TestIssuer) -> None:
    async def check() -> list[AccessToken]:
        client = AsyncIdentityClient(identity_issuer.url, project_id=PROJECT)

        async def send(request: httpx.Request) -> httpx.Response:
            await asyncio.sleep(0)
            return identity_issuer.respond(request)

        client.send = send  # type: ignore[method-assign]
        token = identity_issuer.access_token(PROJECT, subject="anna")
        return await asyncio.gather(*(client.check_access_token(token) for _ in range(8)))

    assert {token.subject for token in asyncio.run(check())} == {"anna"}
    assert paths(identity_issuer).count("/oauth/v2/keys") == 1


def test_discovery_document_of_another_issuer_is_refused(identity_issuer: TestIssuer) -> None:
    client = IdentityClient("https://identity.test/tenant", project_id=PROJECT)
    with pytest.raises(Unavailable):
        client.check_access_token(identity_issuer.access_token(PROJECT))


@pytest.mark.parametrize(
    "issuer", ["http://id.example.com", "id.example.com", "", "ftp://localhost", "http://[", "https://"]
)
def test_issuer_must_be_https(issuer: str) -> None:
    with pytest.raises(ValueError, match="issuer"):
        IdentityClient(issuer)


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("published", ["EdDSA", "Ed25519", None])
@pytest.mark.parametrize("name", ["EdDSA", "Ed25519"])
def test_ed25519_has_two_names(
    identity_issuer: TestIssuer, monkeypatch: pytest.MonkeyPatch, name: str, published: str | None
) -> None:
    text = publish_okp_key(identity_issuer, monkeypatch, "Ed25519", name, published)
    client = IdentityClient(identity_issuer.url, project_id=PROJECT, algorithms=("RS256", name))
    assert client.check_access_token(text).subject == "user"
    client.check_access_token(identity_issuer.access_token(PROJECT))
    # As an application that chose nothing, and with the other key: the algorithm is the key's.
    for algorithms, token in ((("RS256",), text), (("RS256", "EdDSA"), encoded(identity_issuer, {}, {"kid": "okp"}))):
        with pytest.raises(InvalidToken):
            IdentityClient(identity_issuer.url, project_id=PROJECT, algorithms=algorithms).check_access_token(token)


def test_eddsa_does_not_mean_ed448(identity_issuer: TestIssuer, monkeypatch: pytest.MonkeyPatch) -> None:
    text = publish_okp_key(identity_issuer, monkeypatch, "Ed448", "EdDSA", "EdDSA")
    with pytest.raises(InvalidToken):
        IdentityClient(identity_issuer.url, project_id=PROJECT, algorithms=("EdDSA",)).check_access_token(text)


def publish_okp_key(
    issuer: TestIssuer, monkeypatch: pytest.MonkeyPatch, curve: Any, name: str, published: str | None
) -> str:
    """Publish another key besides the issuer's; returns a token that it signed under this name of the algorithm."""
    key, respond = OKPKey.generate_key(curve), issuer.respond
    jwk = {**key.as_dict(private=False), "kid": "okp", "use": "sig", **({"alg": published} if published else {})}

    def respond_with_key(request: httpx.Request) -> httpx.Response:
        response = respond(request)
        if not request.url.path.endswith("/keys"):
            return response
        return httpx.Response(200, json={"keys": [*response.json()["keys"], jwk]}, request=request)

    monkeypatch.setattr(issuer, "respond", respond_with_key)
    now = int(time.time())
    claims = {"iss": issuer.url, "aud": [PROJECT], "sub": "user", "iat": now, "exp": now + 60}
    parts = ({"alg": name, "kid": "okp", "typ": "at+jwt"}, claims)
    data = b".".join(base64.urlsafe_b64encode(json.dumps(part).encode()).rstrip(b"=") for part in parts)
    signature = key.private_key.sign(data)
    return f"{data.decode()}.{base64.urlsafe_b64encode(signature).rstrip(b'=').decode()}"


@pytest.mark.parametrize("algorithms", [(), ("none",), ("HS256",), ("RS256", "HS256")])
def test_algorithms_must_be_asymmetric(algorithms: tuple[str, ...]) -> None:
    with pytest.raises(ValueError, match="algorithms"):
        IdentityClient("https://id.example.com", algorithms=algorithms)


class TestIntrospection:
    def test_revoked_token_is_refused_once_it_is_no_longer_remembered(
        self, identity_issuer: TestIssuer, introspecting: IdentityClient, clock: Callable[[float], None]
    ) -> None:
        token = identity_issuer.access_token(PROJECT, roles=["reader"])
        assert introspecting.check_access_token(token).roles == {"reader"}
        identity_issuer.revoke(token)
        introspecting.check_access_token(token)
        assert paths(identity_issuer).count("/oauth/v2/introspect") == 1
        clock(11)
        with pytest.raises(InvalidToken):
            introspecting.check_access_token(token)

    def test_nothing_is_remembered_with_a_max_age_of_0(self, identity_issuer: TestIssuer) -> None:
        client = IdentityClient(
            identity_issuer.url, project_id=PROJECT, client_id="api", client_secret="s", introspection_max_age=0
        )
        token = identity_issuer.access_token(PROJECT)
        client.introspect(token)
        identity_issuer.revoke(token)
        with pytest.raises(InvalidToken):
            client.introspect(token)

    def test_token_is_not_remembered_beyond_its_expiry(
        self, identity_issuer: TestIssuer, introspecting: IdentityClient, clock: Callable[[float], None]
    ) -> None:
        token = identity_issuer.access_token(PROJECT, lifetime=3)
        introspecting.introspect(token)
        clock(4)
        with pytest.raises(InvalidToken):
            introspecting.introspect(token)

    def test_token_for_others_is_refused(self, identity_issuer: TestIssuer, introspecting: IdentityClient) -> None:
        for token in (
            identity_issuer.access_token("0199-other"),
            identity_issuer.access_token(PROJECT, cnf={"jkt": "0ZcOCORZNYy-DWpqq30jZyJGHTN0d2HglBV3uiguA4I"}),
        ):
            with pytest.raises(InvalidToken):
                introspecting.introspect(token)

    def test_client_authenticates_with_encoded_credentials(self, identity_issuer: TestIssuer) -> None:
        client = IdentityClient(identity_issuer.url, project_id=PROJECT, client_id="a:b", client_secret="c d")
        client.introspect(identity_issuer.access_token(PROJECT))
        sent = identity_issuer.requests[-1].headers["Authorization"]
        assert base64.b64decode(sent.removeprefix("Basic ")) == b"a%3Ab:c+d"

    def test_client_that_is_registered_for_it_authenticates_in_the_form(self, identity_issuer: TestIssuer) -> None:
        client = IdentityClient(
            identity_issuer.url,
            project_id=PROJECT,
            client_id="api",
            client_secret="c d",
            authentication_method="client_secret_post",
        )
        client.introspect(identity_issuer.access_token(PROJECT))
        request = identity_issuer.requests[-1]
        assert "Authorization" not in request.headers
        assert b"client_id=api&client_secret=c+d" in request.content
        with pytest.raises(ValueError, match="authentication_method"):
            IdentityClient(identity_issuer.url, authentication_method="none")

    @pytest.mark.parametrize("status", [302, 401, 429, 500, 503])
    def test_failed_request_means_unavailable(
        self, identity_issuer: TestIssuer, introspecting: IdentityClient, status: int
    ) -> None:
        introspecting.published()
        introspecting.send = lambda request: httpx.Response(status, json={}, request=request)  # type: ignore[method-assign]
        with pytest.raises(Unavailable):
            introspecting.introspect("opaque")

    @pytest.mark.parametrize("content", [b"", b"<html>", b"[]", b'{"active": "true"}', b"[" * 100000, b'{"active": 1}'])
    def test_malformed_response_grants_nothing(
        self, identity_issuer: TestIssuer, introspecting: IdentityClient, content: bytes
    ) -> None:
        introspecting.published()
        introspecting.send = lambda request: httpx.Response(200, content=content, request=request)  # type: ignore[method-assign]
        with pytest.raises((Unavailable, InvalidToken)):
            introspecting.introspect("opaque")

    def test_asyncio(self, identity_issuer: TestIssuer) -> None:
        async def roles() -> frozenset[str]:
            async with AsyncIdentityClient(
                identity_issuer.url, project_id=PROJECT, client_id="api", client_secret="secret"
            ) as client:
                token = identity_issuer.access_token(PROJECT, roles=["reader"])
                await client.check_access_token(token)
                return (await client.check_access_token(token)).roles

        assert asyncio.run(roles()) == {"reader"}
        assert paths(identity_issuer).count("/oauth/v2/introspect") == 1


class TestRoles:
    def test_roles_of_other_projects_do_not_count(self) -> None:
        claims = {
            "urn:service:iam:org:project:roles": {"admin": {"o": "d"}},
            **role_claim("0199-other", ["admin"]),
            **role_claim(PROJECT, ["reader"]),
        }
        token = AccessToken(claims, PROJECT)
        assert token.roles == {"reader"}
        assert not token.has_role("admin")

    def test_role_by_organization(self) -> None:
        token = AccessToken({"sub": "anna", **role_claim(PROJECT, ["reader"], organization="acme")}, PROJECT)
        assert token.has_role("reader", organization="acme")
        assert not token.has_role("reader", organization="globex")
        token.require_role("writer", "reader")
        with pytest.raises(MissingRole):
            token.require_role("reader", organization="globex")
        with pytest.raises(MissingRole):
            token.require_role()

    @given(
        st.recursive(
            st.none() | st.booleans() | st.integers() | st.text(max_size=5),
            lambda inner: (
                st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["reader", "o", ""]), inner, max_size=3)
            ),
            max_leaves=8,
        )
    )
    def test_malformed_role_claims_grant_nothing(self, value: Any) -> None:
        token = AccessToken({f"urn:service:iam:org:project:{PROJECT}:roles": value}, PROJECT)
        expected = isinstance(value, dict) and isinstance(value.get("reader"), dict) and bool(value["reader"])
        assert token.has_role("reader") is ("reader" in token.roles) is expected
        assert not AccessToken({"urn:service:iam:org:project::roles": {"reader": {"o": ""}}}, "").roles


def test_errors_are_of_one_kind_and_tokens_are_not_shown(
    identity_issuer: TestIssuer, introspecting: IdentityClient
) -> None:
    token = identity_issuer.access_token("0199-other")
    with pytest.raises(IdentityError) as refused:
        introspecting.introspect(token)
    assert token not in str(refused.value)
    assert "secret" not in repr(introspecting)
