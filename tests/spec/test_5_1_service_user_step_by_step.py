"""Service description §5.1: service user, step by step, as its rules have it."""

import json

from cryptography.hazmat.primitives.asymmetric.rsa import RSAPrivateKey
from cryptography.hazmat.primitives.serialization import load_pem_private_key

from identity.services.access import THE_OPERATOR
from identity.services.commands.service_users import AddServiceUserKey
from identity.testing.assertions import signed
from identity.testing.responses import check_granted, check_refused
from identity.testing.service_client import JWT_BEARER
from identity.testing.world import Robot, World


def test_the_four_steps(world: World, robot: Robot) -> None:
    """Create a key, build and sign the JWT, exchange it, use the token: with nothing but the key file."""
    with world.transaction() as services:
        text = services.service_users.add_key(robot.id, AddServiceUserKey(), by=THE_OPERATOR).to_json()

    file = json.loads(text)
    key = load_pem_private_key(file["key"].encode(), password=None)
    assert isinstance(key, RSAPrivateKey)
    now = world.clock.seconds
    claims = {"iss": file["userId"], "sub": file["userId"], "aud": world.issuer, "iat": now, "exp": now + 3600}
    assertion = signed(claims, key, key_id=file["keyId"])

    answer = world.client.token({"grant_type": JWT_BEARER, "scope": "openid profile email", "assertion": assertion})
    token = check_granted(answer)["access_token"]
    assert answer.json["expires_in"] > 0

    userinfo = world.client.userinfo(token)
    assert userinfo.status_int == 200
    assert userinfo.json["preferred_username"] == robot.user.user_name


def test_signing_is_with_the_private_key(world: World, robot: Robot) -> None:
    """The public key, which the service has, signs nothing."""
    from identity.crypto.keys import PublicKey
    from identity.testing.assertions import hs256

    public = PublicKey(robot.key.public_key())
    for secret in (public.to_pem().encode(), public.to_der()):
        assertion = signed(robot.claims(), robot.key, key_id=robot.key_id, sign=hs256(secret))
        check_refused(world.client.assertion(assertion), "invalid_grant")


def test_iat_older_than_an_hour_makes_the_assertion_invalid(robot: Robot) -> None:
    now = robot.world.clock.seconds
    check_granted(robot.token(iat=now - 3600))
    check_refused(robot.token(iat=now - 3601), "invalid_grant")


def test_the_assertion_s_audience_is_the_issuer(three_hosts: World) -> None:
    """And no other of the service's addresses."""
    robot = three_hosts.a_robot()
    check_granted(robot.token(aud="https://id.example.com"))
    for address in ("https://api.example.com", "https://login.example.com", "https://api.example.com/oauth/v2/token"):
        check_refused(robot.token(aud=address), "invalid_grant", description="aud must be https://id.example.com")
