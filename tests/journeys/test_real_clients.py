"""Clients that do not know us, over real HTTP: authlib, and a script with requests and the published key file."""

import json
import time

import requests
from authlib.integrations.requests_client import AssertionSession, OAuth2Session
from authlib.oauth2.rfc7523 import JWTBearerGrant
from joserfc import jwk, jwt

from identity.domain.users import TokenFormat
from identity.services.access import THE_OPERATOR
from identity.services.commands.service_users import AddServiceUserKey
from identity.testing.world import Robot, World


def key_file(robot: Robot) -> dict[str, str]:
    """What somebody downloads from the console."""
    with robot.world.transaction() as services:
        text = services.service_users.add_key(robot.id, AddServiceUserKey(), by=THE_OPERATOR).to_json()
    members: dict[str, str] = json.loads(text)
    return members


def test_authlib_s_assertion_session_works_by_itself(served: World) -> None:
    """It signs, asks for a token, uses it, and asks again when it has run out."""
    robot = served.a_manager()
    file = key_file(robot)
    discovery = requests.get(f"{served.issuer}/.well-known/openid-configuration", timeout=10).json()
    session = AssertionSession(
        discovery["token_endpoint"],
        issuer=file["userId"],
        subject=file["userId"],
        audience=discovery["issuer"],
        grant_type=AssertionSession.JWT_BEARER_GRANT_TYPE,
        scope=f"openid profile {served.audience_scope()}",
        key=jwk.RSAKey.import_key(file["key"]),
        header={"alg": "RS256", "kid": file["keyId"]},
        default_timeout=10,
    )
    with session:
        userinfo = session.get(discovery["userinfo_endpoint"])
        assert userinfo.json()["sub"] == robot.id
        me = session.get(f"{served.issuer}/management/v1/me")
        assert me.json()["roles"][0]["roles"] == ["ORG_OWNER"]
        first = session.token["access_token"]
        session.token["expires_at"] = int(time.time()) - 1
        assert session.get(discovery["userinfo_endpoint"]).status_code == 200
        assert session.token["access_token"] != first


def test_authlib_signs_introspects_and_revokes(served: World) -> None:
    robot = served.a_robot()
    file = key_file(robot)
    client = served.introspector
    discovery = served.client.discovery
    assertion = JWTBearerGrant.sign(
        jwk.RSAKey.import_key(file["key"]),
        issuer=file["userId"],
        subject=file["userId"],
        audience=served.issuer,
        header={"alg": "RS256", "kid": file["keyId"]},
    )
    method = "client_secret_basic"
    with OAuth2Session(
        client.client_id, client.secret, token_endpoint_auth_method=method, default_timeout=10
    ) as session:
        form = {"grant_type": JWTBearerGrant.GRANT_TYPE, "assertion": assertion}
        scope = f"openid {served.audience_scope()}"
        answer = requests.post(discovery["token_endpoint"], data=form | {"scope": scope}, timeout=10)
        token = answer.json()["access_token"]
        about = session.introspect_token(discovery["introspection_endpoint"], token=token)
        assert about.json()["active"] is True
        assert about.json()["sub"] == robot.id
        assert session.revoke_token(discovery["revocation_endpoint"], token=token).status_code == 200
        about = session.introspect_token(discovery["introspection_endpoint"], token=token)
        assert about.json() == {"active": False}


def test_a_script_with_requests_and_the_key_file(served: World) -> None:
    """The example that users of the key file have: load, sign, post, use."""
    robot = served.a_robot(token_format=TokenFormat.JWT)
    file = key_file(robot)

    now = int(time.time())
    assertion = jwt.encode(
        {"alg": "RS256", "kid": file["keyId"]},
        {"iss": file["userId"], "sub": file["userId"], "aud": served.issuer, "iat": now, "exp": now + 3600},
        jwk.RSAKey.import_key(file["key"]),
    )
    answer = requests.post(
        f"{served.issuer}/oauth/v2/token",
        data={
            "grant_type": "urn:ietf:params:oauth:grant-type:jwt-bearer",
            "scope": "openid profile email",
            "assertion": assertion,
        },
        timeout=10,
    )
    assert answer.status_code == 200
    assert answer.headers["Content-Type"] == "application/json"
    assert answer.headers["Cache-Control"] == "no-store"
    token = answer.json()["access_token"]
    userinfo = requests.get(
        f"{served.issuer}/oauth/v2/userinfo", headers={"Authorization": f"Bearer {token}"}, timeout=10
    )
    assert userinfo.json()["preferred_username"] == robot.user.user_name
    keys = jwk.KeySet.import_key_set(requests.get(f"{served.issuer}/oauth/v2/keys", timeout=10).json())
    assert jwt.decode(token, keys, algorithms=["RS256"]).claims["sub"] == robot.id
    assert "Server" not in answer.headers
