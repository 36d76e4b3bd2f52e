"""identity_client gets tokens for a service user with its key file, and renews them."""

import asyncio
import json
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs

import httpx
import pytest
from identity_client import IdentityClient, InvalidToken, ServiceUser, TokenRefused, Unavailable
from identity_client.testing import TestIssuer, signing_key
from joserfc import jwt
from joserfc.jwk import ECKey, OKPKey, RSAKey

PROJECT = "0198-project"


@pytest.fixture
def key_file(tmp_path: Path) -> Path:
    path = tmp_path / "key.json"
    key = signing_key().as_pem(private=True).decode()
    path.write_text(json.dumps({"type": "serviceaccount", "keyId": "key-1", "key": key, "userId": "user-1"}))
    return path


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Callable[[float], None]:
    offset, monotonic = [0.0], time.monotonic
    monkeypatch.setattr(time, "monotonic", lambda: monotonic() + offset[0])
    return lambda seconds: offset.__setitem__(0, offset[0] + seconds)


def token_requests(issuer: TestIssuer) -> list[dict[str, list[str]]]:
    return [parse_qs(request.content.decode()) for request in issuer.requests if request.url.path.endswith("/token")]


def test_token_is_for_the_api(identity_issuer: TestIssuer, key_file: Path) -> None:
    token = ServiceUser(identity_issuer.url, key_file, projects=[PROJECT]).token()
    checked = IdentityClient(identity_issuer.url, project_id=PROJECT).check_access_token(token)
    assert checked.subject == "user-1"
    (form,) = token_requests(identity_issuer)
    assert form["grant_type"] == ["urn:ietf:params:oauth:grant-type:jwt-bearer"]
    assert form["scope"] == [f"openid urn:service:iam:org:project:id:{PROJECT}:aud urn:service:iam:org:projects:roles"]
    assertion = jwt.decode(form["assertion"][0], signing_key(), algorithms=["RS256"])
    assert assertion.header["kid"] == "key-1"
    assert assertion.claims["iss"] == assertion.claims["sub"] == "user-1"
    assert assertion.claims["aud"] == identity_issuer.url
    assert 0 < assertion.claims["exp"] - assertion.claims["iat"] <= 3600


@pytest.mark.parametrize(
    ("kind", "expected", "chosen"),
    [(ECKey, "ES256", None), (OKPKey, "Ed25519", None), (RSAKey, "PS256", "PS256")],
)
def test_assertion_is_signed_with_the_algorithm_of_the_key(
    identity_issuer: TestIssuer, tmp_path: Path, kind: Any, expected: str, chosen: str | None
) -> None:
    key, path = kind.generate_key(), tmp_path / "key.json"
    pem = key.as_pem(private=True).decode()
    path.write_text(json.dumps({"type": "serviceaccount", "keyId": "key-1", "key": pem, "userId": "user-1"}))
    ServiceUser(identity_issuer.url, path, algorithm=chosen).token()
    (form,) = token_requests(identity_issuer)
    assertion = jwt.decode(form["assertion"][0], key, algorithms=[expected])
    assert assertion.header == {"alg": expected, "kid": "key-1", "typ": "JWT"}


def test_token_is_renewed_before_it_expires(
    identity_issuer: TestIssuer, key_file: Path, clock: Callable[[float], None]
) -> None:
    service_user = ServiceUser(identity_issuer.url, key_file)
    first = service_user.token()
    clock(3500)
    assert service_user.token() == first
    clock(60)
    service_user.token()
    assert len(token_requests(identity_issuer)) == 2
    assertions = {form["assertion"][0] for form in token_requests(identity_issuer)}
    assert len(assertions) == 2, "each assertion works once"


def test_old_token_serves_while_the_service_is_down(
    identity_issuer: TestIssuer, key_file: Path, clock: Callable[[float], None]
) -> None:
    service_user = ServiceUser(identity_issuer.url, key_file)
    first = service_user.token()
    clock(3560)
    identity_issuer.is_available = False
    assert service_user.token() == first
    clock(60)
    with pytest.raises(Unavailable):
        service_user.token()
    identity_issuer.is_available = True
    clock(6)
    service_user.token()


def test_threads_share_one_request(identity_issuer: TestIssuer, key_file: Path) -> None:
    service_user = ServiceUser(identity_issuer.url, key_file)
    threads = [threading.Thread(target=service_user.token) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(token_requests(identity_issuer)) == 1


def test_httpx_sends_the_token(identity_issuer: TestIssuer, key_file: Path) -> None:
    received: list[str] = []

    def api(request: httpx.Request) -> httpx.Response:
        received.append(request.headers["Authorization"])
        return httpx.Response(200 if len(received) < 3 else 401)

    service_user = ServiceUser(identity_issuer.url, key_file)
    with httpx.Client(auth=service_user, transport=httpx.MockTransport(api)) as http:
        for _ in range(3):
            http.get("https://api.test/stock")
        assert len(set(received)) == len(token_requests(identity_issuer)) == 1
        http.get("https://api.test/stock")
    assert len(token_requests(identity_issuer)) == 2, "a token that the API refused is not used again"


def test_asyncio(identity_issuer: TestIssuer, key_file: Path) -> None:
    async def call() -> list[str]:
        received: list[str] = []

        def api(request: httpx.Request) -> httpx.Response:
            received.append(request.headers["Authorization"])
            return httpx.Response(200)

        service_user = ServiceUser(identity_issuer.url, key_file)
        async with httpx.AsyncClient(auth=service_user, transport=httpx.MockTransport(api)) as http:
            await asyncio.gather(*(http.get("https://api.test/stock") for _ in range(5)))
        return received

    received = asyncio.run(call())
    assert len(received) == 5
    assert len(set(received)) == 1
    assert received[0].startswith("Bearer ")
    assert len(token_requests(identity_issuer)) == 1


def test_new_key_file_needs_no_restart(
    identity_issuer: TestIssuer, key_file: Path, clock: Callable[[float], None]
) -> None:
    service_user = ServiceUser(identity_issuer.url, key_file)
    service_user.token()
    key_file.write_text(key_file.read_text().replace("key-1", "key-2"))
    clock(3600)
    service_user.token()
    assertion = token_requests(identity_issuer)[-1]["assertion"][0]
    assert jwt.decode(assertion, signing_key(), algorithms=["RS256"]).header["kid"] == "key-2"


@pytest.mark.parametrize("content", ["", "[]", "{}", '{"userId": "u", "keyId": "k", "key": "secret-text"}'])
def test_other_files_are_refused_without_quoting_them(
    identity_issuer: TestIssuer, tmp_path: Path, content: str
) -> None:
    path = tmp_path / "other.json"
    path.write_text(content)
    with pytest.raises(ValueError, match="is not the key file") as refused:
        ServiceUser(identity_issuer.url, path).token()
    assert "secret-text" not in str(refused.value)
    assert refused.value.__cause__ is None
    assert refused.value.__suppress_context__


def test_refused_assertion_names_the_error(identity_issuer: TestIssuer, key_file: Path) -> None:
    service_user = ServiceUser(identity_issuer.url, key_file)
    service_user._client.published()
    answer = httpx.Response(400, json={"error": "invalid_grant"})

    def refuse(request: httpx.Request) -> httpx.Response:
        answer.request = request
        return answer

    service_user._client.send = refuse  # type: ignore[method-assign]
    with pytest.raises(TokenRefused) as refused:
        service_user.token()
    assert refused.value.error == "invalid_grant"


def test_token_for_one_api_is_refused_by_another(identity_issuer: TestIssuer, key_file: Path) -> None:
    token = ServiceUser(identity_issuer.url, key_file, projects=["0199-other"]).token()
    with pytest.raises(InvalidToken):
        IdentityClient(identity_issuer.url, project_id=PROJECT).check_access_token(token)
