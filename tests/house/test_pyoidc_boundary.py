"""The boundary to pyoidc: no inherited method bypasses this service's storage and checks."""

import inspect
import os
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from oic.exception import MessageException
from oic.oauth2.message import Message
from oic.oauth2.provider import Provider as OAuth2Provider
from oic.oic.message import IdToken as PyoidcIdToken
from oic.oic.provider import Provider
from oic.utils.clientdb import BaseClientDatabase

from identity.crypto.signature_keys import PrivateKey, PublicKey
from identity.provider.pyoidc_messages import (
    AccessTokenResponse,
    AuthorizationResponse,
    ForbiddenSignature,
    IdToken,
    IdTokenSigningKey,
    OpenIDSchema,
    TokenIntrospectionResponse,
)
from identity.provider.pyoidc_provider import (
    ALLOWED_METHODS,
    DisabledDatabase,
    ForbiddenCall,
    IdentityProvider,
    blocked_methods,
)
from identity.testing.jwt_assertions import decode_jwt_unverified

NOW = datetime(2026, 1, 1, tzinfo=UTC)


def provider() -> IdentityProvider:
    return IdentityProvider(
        "https://id.example.com",
        base_url="https://api.example.com",
        client_authn=lambda *_: None,  # type: ignore[arg-type, return-value]
    )


def inherited_callables() -> list[str]:
    """Every method of a pyoidc provider, found independently of our list."""
    return sorted(name for name, _ in inspect.getmembers(Provider, callable) if not name.startswith("__"))


# --- methods ----------------------------------------------------------------------------------------------------------


def test_inherited_method_is_ours_or_refuses() -> None:
    for name in set(inherited_callables()) - ALLOWED_METHODS:
        method = getattr(provider(), name)
        if method.__qualname__ == f"IdentityProvider.{name}":
            assert method.__module__ == IdentityProvider.__module__
            continue
        with pytest.raises(ForbiddenCall, match=name):
            method()


def test_walk_meets_every_endpoint() -> None:
    """Guards the test above, which would pass if it found no methods."""
    found = set(inherited_callables())
    for kind in (Provider, OAuth2Provider):
        assert {name for name in vars(kind) if name.endswith("_endpoint")} <= found
    assert {
        *("authorization_endpoint", "token_endpoint", "userinfo_endpoint", "registration_endpoint"),
        *("end_session_endpoint", "providerinfo_endpoint", "verify_endpoint", "code_grant_type"),
        *("refresh_token_grant_type", "get_redirect_uri", "is_session_revoked", "recuperate_keys"),
    } <= found


def test_allowed_names_exist_in_pyoidc() -> None:
    assert {name for name in ALLOWED_METHODS if hasattr(Provider, name)} == ALLOWED_METHODS


def test_properties_are_kept_by_name_too() -> None:
    """Properties are not callable, so blocked_methods() would not cover them."""
    assert {
        name for name, _ in inspect.getmembers(Provider, lambda item: isinstance(item, property))
    } <= ALLOWED_METHODS


def test_allowed_pyoidc_methods_reach_no_database(monkeypatch: pytest.MonkeyPatch) -> None:
    """Allowed methods only build ID tokens from their arguments."""
    identity_provider = provider()
    monkeypatch.setattr(identity_provider, "sdb", DisabledDatabase())
    identity_provider.build_jwx_def()


def test_unknown_pyoidc_method_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """The list names allowed methods, so new ones are blocked."""
    monkeypatch.setattr(Provider, "brand_new_endpoint", lambda self: "open to anyone", raising=False)
    assert "brand_new_endpoint" in blocked_methods()


def test_pyoidc_endpoint_classes_are_disabled() -> None:
    """pyoidc's endpoint objects find the handler on the provider by its name."""
    for endpoint in Provider.endp:
        handler = getattr(provider(), f"{endpoint.etype}_endpoint")
        with pytest.raises(ForbiddenCall):
            handler(request="", authn="", cookie="")


# --- databases --------------------------------------------------------------------------------------------------------


def test_session_database_refuses() -> None:
    database: Any = provider().sdb
    for act in (
        lambda: database["x"],
        lambda: database.__setitem__("x", 1),
        lambda: "x" in database,
        lambda: database.is_valid("x"),
        lambda: database.create_authz_session("sub", None),
    ):
        with pytest.raises(ForbiddenCall):
            act()


def test_client_database_refuses() -> None:
    clients: Any = provider().cdb
    assert isinstance(clients, BaseClientDatabase)
    for act in (
        lambda: clients["x"],
        lambda: clients.__setitem__("x", {}),
        lambda: clients.__delitem__("x"),
        lambda: "x" in clients,
        *(clients.keys, clients.items, lambda: list(clients), lambda: len(clients), lambda: clients.get("x")),
    ):
        with pytest.raises(ForbiddenCall):
            act()


# --- state ------------------------------------------------------------------------------------------------------------


def test_list_of_endpoints_is_not_shared() -> None:
    shipped = list(Provider.endp)
    identity_provider, two = provider(), provider()
    assert identity_provider.endp == two.endp == []
    assert Provider.endp == shipped
    assert identity_provider.endp is not Provider.endp


def test_no_cookie_could_be_made() -> None:
    assert (provider().seed, provider().symkey) == (b"", None)


def test_key_jar_is_empty() -> None:
    """Private keys are passed as arguments; pyoidc stores none."""
    assert not provider().keyjar.issuer_keys.get("")


@pytest.mark.thorough
def test_environment_is_not_read() -> None:
    """pyoidc's settings would read TIMEOUT, VERIFY_SSL and others, and fail to start with ``30s``."""
    code = (
        "from identity.provider.pyoidc_provider import IdentityProvider;"
        "one = IdentityProvider('https://a', base_url='https://a', client_authn=None);"
        "print(one.settings.timeout, one.settings.verify_ssl)"
    )
    strange = {"TIMEOUT": "30s", "VERIFY_SSL": "maybe", "DEBUG": "?", "CLIENT_CERT": "1"}
    created = [
        subprocess.run(
            [sys.executable, "-W", "ignore", "-c", code],
            env=dict(os.environ) | more,
            capture_output=True,
            text=True,
            check=False,
        )
        for more in ({}, strange)
    ]
    assert [item.stderr for item in created] == ["", ""]
    assert created[0].stdout == created[1].stdout != ""


# --- responses --------------------------------------------------------------------------------------------------------


VALUES = ("", "a", "a b", 5, True, None, 1.5, [], [""], [None], ["a"], ["a", "b"], [1], {}, {"street": "a"})


def written(message: type[Message], members: dict[str, Any]) -> str:
    try:
        text: str = message(**members).to_json()
    except (MessageException, ValueError) as refusal:
        return type(refusal).__name__
    return text


@pytest.mark.parametrize(
    "ours", [AuthorizationResponse, AccessTokenResponse, TokenIntrospectionResponse, OpenIDSchema, IdToken]
)
def test_response_matches_pyoidc(ours: type[Message]) -> None:
    """Our classes skip pyoidc's conversion of plain values; the result must be equal, including the order of
    members."""
    pyoidc_class = next(kind for kind in ours.__mro__ if not kind.__module__.startswith("identity"))
    answered = refused = 0
    for name in (*ours.c_param, "own"):
        for value in VALUES:
            if name == "id_token" and type(value) not in (str, bool):
                # An ID token is a text or None.
                continue
            members = {"state": "b", name: value, "iat": 3}
            answer = written(ours, members)
            assert answer == written(pyoidc_class, members), (name, value)
            answered, refused = answered + answer.startswith("{"), refused + (not answer.startswith("{"))
    assert answered > 50
    assert refused > 20


# --- ID tokens --------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def key() -> PrivateKey:
    return PrivateKey.generate()


def content(**changed: Any) -> dict[str, Any]:
    members: dict[str, Any] = {
        "subject": "user",
        "client_id": "client",
        "issued_at": NOW,
        "lifetime": timedelta(minutes=5),
        "claims": {"at_hash": "hash"},
    }
    return members | changed


def test_id_token_is_signed_by_identity(key: PrivateKey, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise AssertionError("pyjwkest signs")

    monkeypatch.setattr("jwkest.jws.JWS.sign_compact", refuse)
    header, claims = decode_jwt_unverified(provider().id_token(**content(), key=("key-1", key)))
    assert header == {"alg": "RS256", "kid": "key-1"}
    assert claims["iss"] == "https://id.example.com"
    assert (claims["sub"], claims["aud"], claims["azp"]) == ("user", "client", "client")
    assert (claims["iat"], claims["exp"]) == (1767225600, 1767225900)


def test_plugin_claims_cannot_replace_token_claims(key: PrivateKey) -> None:
    """Such claims are filtered earlier; this is a second barrier."""
    _, claims = decode_jwt_unverified(
        provider().id_token(**content(claims={"azp": "evil", "auth_time": 1}), key=("k", key))
    )
    assert claims["azp"] == "client"
    for name in ("iss", "sub", "aud", "exp", "iat"):
        with pytest.raises(TypeError, match=name):
            provider().id_token(**content(claims={name: "evil"}), key=("k", key))


def test_no_other_algorithm(key: PrivateKey) -> None:
    for algorithm in ("none", "HS256", "RS384", "ES256", "rs256", "", None):
        with pytest.raises(ForbiddenSignature):
            IdToken(iss="i", sub="s", aud="a").to_jwt(IdTokenSigningKey("k", key), algorithm)


def test_no_other_key(key: PrivateKey) -> None:
    wrong: list[Any] = [None, b"secret", [], key, PublicKey.from_der(key.public_key().to_der())]
    for item in wrong:
        with pytest.raises(ForbiddenSignature):
            IdToken(iss="i", sub="s", aud="a").to_jwt(item, "RS256")


def test_pyoidc_creates_own_id_token_class(key: PrivateKey) -> None:
    """If ``make_id_token`` were not replaced, pyoidc's own class would sign, with pyjwkest and any algorithm."""
    id_token = provider().server.make_id_token({"sub": "s", "aud": "c"}, issuer="i")
    assert type(id_token) is IdToken
    assert IdToken.to_jwt is not PyoidcIdToken.to_jwt
