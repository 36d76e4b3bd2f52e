"""Service description §2.3: the signed assertion. The decisions define the order of the checks and the error texts."""

import base64
import json
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import padding
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPrivateKey

from identity.crypto.jwt import sign
from identity.crypto.signature_keys import PrivateKey, PublicKey
from identity.services.commands.service_users import AddServiceUserKey
from identity.testing.assembled_service import OperatorServices
from identity.testing.jwt_assertions import (
    OMITTED,
    base64url,
    encode_jwt_segment,
    hs256,
    no_signature,
    ps256,
    rs256,
    sign_assertion,
)
from identity.testing.response_checks import check_oauth_error, check_token_response, comparable_headers
from identity.testing.world import ServiceUserProgram, World

#: The description of every refusal up to and including the signature check.
REFUSED = "the assertion is not valid"

Build = Callable[[ServiceUserProgram], str]


def with_header(**header: Any) -> Build:
    return lambda robot: robot.assertion(header=header)


def with_claims(**claims: Any) -> Build:
    return lambda robot: robot.assertion(**claims)


def with_text(*, header: str | bytes | None = None, claims: str | bytes | None = None) -> Build:
    """A validly signed assertion with this exact header or claims text; ``%s`` is the kid or user id."""

    def build(robot: ServiceUserProgram) -> str:
        own_header = header % robot.key_id if isinstance(header, str) else header
        own_claims = claims % robot.id if isinstance(claims, str) else claims
        return sign_assertion(
            robot.claims() if own_claims is None else own_claims, robot.key, key_id=robot.key_id, header=own_header
        )

    return build


def with_algorithm(name: object, sign: Callable[[ServiceUserProgram], Any]) -> Build:
    return lambda robot: sign_assertion(
        robot.claims(), robot.key, key_id=robot.key_id, header={"alg": name}, sign=sign(robot)
    )


def rsa_signer(key: RSAPrivateKey, algorithm: hashes.HashAlgorithm) -> Callable[[bytes], bytes]:
    return lambda data: key.sign(data, padding.PKCS1v15(), algorithm)


def public(robot: ServiceUserProgram) -> PublicKey:
    return PublicKey(robot.key.public_key())


def pem(robot: ServiceUserProgram) -> bytes:
    return public(robot).to_pem().encode()


def changed_part(number: int, change: Callable[[str], str]) -> Build:
    def build(robot: ServiceUserProgram) -> str:
        parts = robot.assertion().split(".")
        parts[number] = change(parts[number])
        return ".".join(parts)

    return build


def other_claims(robot: ServiceUserProgram) -> str:
    """Claims of another user under the original signature."""
    header, _, signature = robot.assertion().split(".")
    return f"{header}.{encode_jwt_segment(robot.claims(jti='another'))}.{signature}"


def kid_of_another_user(robot: ServiceUserProgram) -> str:
    program = robot.world.make_service_user_program(robot.organization)
    return sign_assertion(robot.claims(), program.key, key_id=program.key_id)


def name_of_another_user(robot: ServiceUserProgram) -> str:
    """Valid key and signature, but iss and sub name another user."""
    program = robot.world.make_service_user_program(robot.organization)
    return robot.assertion(iss=program.id, sub=program.id)


def name_of_a_person(robot: ServiceUserProgram) -> str:
    person = robot.world.make_human_user(robot.organization)
    return robot.assertion(iss=person.id, sub=person.id)


def key_of_another_user(robot: ServiceUserProgram) -> str:
    """Signed by a foreign key under this kid."""
    return sign_assertion(robot.claims(), robot.world.make_service_user_program().key, key_id=robot.key_id)


def after(change: Callable[[ServiceUserProgram, OperatorServices], object]) -> Build:
    """A valid assertion, sent after a change."""

    def build(robot: ServiceUserProgram) -> str:
        change(robot, robot.world.operator_services)
        return robot.assertion()

    return build


def expired_key(robot: ServiceUserProgram) -> str:
    world = robot.world
    short_lived = world.add_service_user_key(robot, expires_at=world.clock() + timedelta(seconds=10))
    world.clock.advance(10)
    return short_lived.assertion()


def id_token(robot: ServiceUserProgram) -> str:
    token: str = check_token_response(robot.request_token())["id_token"]
    return token


def deep(levels: int) -> str:
    return "[" * levels + "]" * levels


RIGHT_CLAIMS = '{"iss":"%s","sub":"x","aud":"y","iat":1,"exp":2'

STRANGERS: dict[str, Build] = {
    # alg is exactly the key's, here RS256; names that no key can have are refused before the lookup (security 2.1)
    "alg none, no signature": with_algorithm("none", lambda robot: no_signature),
    "alg none, some signature": with_algorithm("none", lambda robot: rs256(robot.key)),
    "alg None": with_algorithm("None", lambda robot: rs256(robot.key)),
    "alg HS256 over the public key as PEM": with_algorithm("HS256", lambda robot: hs256(pem(robot))),
    "alg HS256 over the public key as DER": with_algorithm("HS256", lambda robot: hs256(public(robot).to_der())),
    "alg PS256": with_algorithm("PS256", lambda robot: ps256(robot.key)),
    "alg RS384": with_algorithm("RS384", lambda robot: rsa_signer(robot.key, hashes.SHA384())),
    "alg RS512": with_algorithm("RS512", lambda robot: rsa_signer(robot.key, hashes.SHA512())),
    "alg ES256 with the RSA key": with_algorithm("ES256", lambda robot: rs256(robot.key)),
    "alg EdDSA with the RSA key": with_algorithm("EdDSA", lambda robot: rs256(robot.key)),
    "alg rs256": with_algorithm("rs256", lambda robot: rs256(robot.key)),
    "alg RS256 with a space": with_algorithm("RS256 ", lambda robot: rs256(robot.key)),
    "alg a list": with_algorithm(["RS256"], lambda robot: rs256(robot.key)),
    "alg missing": with_header(alg=OMITTED),
    "alg null": with_header(alg=None),
    "alg RS256 over another hash": with_algorithm("RS256", lambda robot: rsa_signer(robot.key, hashes.SHA384())),
    "alg RS256 over the public key as secret": with_algorithm("RS256", lambda robot: hs256(pem(robot))),
    "alg RS256 over another padding": with_algorithm("RS256", lambda robot: ps256(robot.key)),
    # kid and iss, looked up in one query (security 2.2)
    "kid missing": with_header(kid=OMITTED),
    "kid empty": with_header(kid=""),
    "kid a number": with_header(kid=7),
    "kid null": with_header(kid=None),
    "kid unknown": with_header(kid="no-such-key"),
    "kid too long": with_header(kid="k" * 129),
    "kid with NUL": with_header(kid="k\0"),
    "kid of another user": kid_of_another_user,
    "iss missing": with_claims(iss=OMITTED),
    "iss empty": with_claims(iss=""),
    "iss a number": with_claims(iss=1),
    "iss a list": lambda robot: robot.assertion(iss=[robot.id]),
    "iss unknown": with_claims(iss="nobody"),
    "iss too long": with_claims(iss="u" * 129),
    "iss with a lone surrogate": with_text(claims='{"iss":"%s\\ud800"}'),
    "iss of another user": name_of_another_user,
    "iss of a person": name_of_a_person,
    "user deactivated": after(lambda robot, operator: operator.service_users.deactivate(robot.id)),
    "user removed": after(lambda robot, operator: operator.service_users.remove(robot.id)),
    "organization deactivated": after(lambda robot, operator: operator.organizations.deactivate(robot.organization.id)),
    "organization removed": after(lambda robot, operator: operator.organizations.remove(robot.organization.id)),
    "key removed": after(lambda robot, operator: operator.service_users.remove_key(robot.id, robot.key_id)),
    "key expired": expired_key,
    # headers that contain or reference a key, or change parsing (security 2.3)
    "header jwk": lambda robot: robot.assertion(header={"jwk": public(robot).to_jwk(robot.key_id)}),
    "header jku": with_header(jku="https://attacker.example/keys"),
    "header x5u": with_header(x5u="https://attacker.example/certificate"),
    "header x5c": with_header(x5c=["MIIB"]),
    "header x5t": with_header(x5t="AAAA"),
    "header x5t#S256": with_header(**{"x5t#S256": "AAAA"}),
    "header crit": with_header(crit=["exp"]),
    "header b64": with_header(b64=False, crit=["b64"]),
    "typ at+jwt": with_header(typ="at+jwt"),
    "typ of another kind": with_header(typ="logout+jwt"),
    "typ a number": with_header(typ=1),
    # format (security 2.7)
    "empty parts": lambda robot: "..",
    "one part": lambda robot: robot.assertion().replace(".", ""),
    "two parts": lambda robot: robot.assertion().rpartition(".")[0],
    "four parts": lambda robot: robot.assertion() + ".AAAA",
    "five parts": lambda robot: robot.assertion() + ".AAAA.AAAA",
    "signature missing": lambda robot: robot.assertion().rpartition(".")[0] + ".",
    "signature padded": changed_part(2, lambda part: part + "=="),
    "signature in plain base64": changed_part(
        2, lambda part: base64.b64encode(base64.urlsafe_b64decode(part + "==")).decode()
    ),
    "signature shortened": changed_part(2, lambda part: part[:-4]),
    "signature lengthened": changed_part(2, lambda part: part + "AAAA"),
    "signature of zeros": changed_part(2, lambda part: base64url(bytes(256))),
    "signature by another key": key_of_another_user,
    "signature of other claims": other_claims,
    "header padded": changed_part(0, lambda part: part + "="),
    "claims with a line break": changed_part(1, lambda part: part[:10] + "\n" + part[10:]),
    "claims not base64": changed_part(1, lambda part: "!" + part[1:]),
    "claims with stray bits": with_text(claims=b"{}"),
    "space around": lambda robot: f" {robot.assertion()} ",
    "not ASCII": lambda robot: robot.assertion() + "é",
    "too long": lambda robot: robot.assertion(filler="x" * 8192),
    "header no JSON": with_text(header="RS256 %s"),
    "header a list": with_text(header='["RS256","%s"]'),
    "header a text": with_text(header='"%s"'),
    "header null": with_text(header=b"null"),
    "header repeats alg": with_text(header='{"alg":"none","alg":"RS256","kid":"%s"}'),
    "header repeats kid": with_text(header='{"alg":"RS256","kid":"x","kid":"%s"}'),
    "claims no JSON": with_text(claims="iss=%s"),
    "claims a list": with_text(claims='["%s"]'),
    "claims with a comma too many": with_text(claims=RIGHT_CLAIMS + ",}"),
    "claims cut off": with_text(claims=RIGHT_CLAIMS),
    "claims repeat iss": with_text(claims=RIGHT_CLAIMS + ',"iss":"other"}'),
    "claims repeat exp": with_text(claims=RIGHT_CLAIMS + ',"exp":9}'),
    "claims repeat a name below": with_text(claims=RIGHT_CLAIMS + ',"a":{"b":1,"b":2}}'),
    "claims nested too deep": with_text(claims=RIGHT_CLAIMS + f',"a":{deep(8)}}}'),
    "claims nested beyond measure": with_text(claims=RIGHT_CLAIMS + f',"a":{deep(2500)}}}'),
    "claims with NaN": with_text(claims=RIGHT_CLAIMS + ',"a":NaN}'),
    "claims with Infinity": with_text(claims=RIGHT_CLAIMS + ',"a":-Infinity}'),
    "claims with an endless number": with_text(claims=RIGHT_CLAIMS + f',"a":{"9" * 5000}}}'),
    "claims with 1e999": with_text(claims=RIGHT_CLAIMS + ',"a":1e999}'),
    "claims with NUL": with_text(claims=RIGHT_CLAIMS + ',"a":"\\u0000"}'),
    "claims not UTF-8": with_text(claims=b'{"iss":"\xff"}'),
    "claims in UTF-16": lambda robot: sign_assertion(
        json.dumps(robot.claims()).encode("utf-16"), robot.key, key_id=robot.key_id
    ),
    "claims with a byte order mark": lambda robot: sign_assertion(
        b"\xef\xbb\xbf" + json.dumps(robot.claims()).encode(), robot.key, key_id=robot.key_id
    ),
    # tokens of this service are not assertions (security 7.1)
    "an ID token": id_token,
    "an opaque access token": lambda robot: robot.access_token(),
    "a client id": lambda robot: robot.id,
}


@pytest.mark.thorough
@pytest.mark.shows("2.3.1", "2.3.2", "5.1.5")
def test_failures_before_signature_share_one_error(world: World, robot: ServiceUserProgram) -> None:
    """Security 2.8: neither body nor headers reveal the reason."""
    reference = world.client.exchange_assertion(robot.assertion(header={"kid": "no-such-key"}))
    for case, build in STRANGERS.items():
        answer = world.client.exchange_assertion(build(world.make_service_user_program()))
        check_oauth_error(answer, "invalid_grant", description=REFUSED)
        assert (answer.body, comparable_headers(answer)) == (reference.body, comparable_headers(reference)), case


@pytest.mark.parametrize("algorithm", ["PS256", "ES256", "EdDSA"])
def test_key_is_bound_to_its_algorithm(world: World, robot: ServiceUserProgram, algorithm: str) -> None:
    """A deviation from §2.3: an assertion names exactly the algorithm of its key, which is RS256 by default."""
    file = world.operator_services.service_users.add_key(robot.id, AddServiceUserKey.decode({"algorithm": algorithm}))
    assert list(json.loads(file.to_json())) == ["type", "keyId", "key", "userId"]
    key = PrivateKey.from_pem(file.key, algorithm)
    check_token_response(world.client.exchange_assertion(sign(robot.claims(), key, key_id=file.key_id)))
    for other in {"RS256", "PS256", "ES256", "EdDSA"} - {algorithm}:
        stranger = PrivateKey.generate(algorithm=other)
        if (other, algorithm) == ("RS256", "PS256"):
            stranger = PrivateKey(key.native, other)
        answer = world.client.exchange_assertion(sign(robot.claims(), stranger, key_id=file.key_id))
        check_oauth_error(answer, "invalid_grant", description=REFUSED)
    # A key for RS256 is not one for PS256, either.
    swapped = sign(robot.claims(), PrivateKey(robot.key, "PS256"), key_id=robot.key_id)
    check_oauth_error(world.client.exchange_assertion(swapped), "invalid_grant", description=REFUSED)


def test_ed25519_names_the_algorithm_of_an_eddsa_key(world: World, robot: ServiceUserProgram) -> None:
    """RFC 9864 §2.2."""
    file = world.operator_services.service_users.add_key(robot.id, AddServiceUserKey.decode({"algorithm": "EdDSA"}))
    native: Any = PrivateKey.from_pem(file.key).native
    assertion = sign_assertion(
        robot.claims(), robot.key, key_id=file.key_id, header={"alg": "Ed25519"}, sign=native.sign
    )
    check_token_response(world.client.exchange_assertion(assertion))


def test_jwt_access_token_is_refused_as_assertion(world: World) -> None:
    """Security 7.1."""
    from identity.domain.users import TokenFormat

    token = world.make_service_user_program(token_format=TokenFormat.JWT).access_token()
    check_oauth_error(world.client.exchange_assertion(token), "invalid_grant", description=REFUSED)


ACCEPTED: dict[str, Callable[[ServiceUserProgram], dict[str, Any]]] = {
    "the five claims alone": lambda robot: {},
    "aud as a list of one": lambda robot: {"aud": [robot.world.issuer]},
    "iat one hour old": lambda robot: {"iat": robot.world.clock.seconds - 3600},
    "iat 30 s ahead": lambda robot: {"iat": robot.world.clock.seconds + 30},
    "exp 29 s ago": lambda robot: {"iat": robot.world.clock.seconds - 60, "exp": robot.world.clock.seconds - 29},
    "exp 24 h after iat": lambda robot: {"exp": robot.world.clock.seconds + 86400},
    "nbf past": lambda robot: {"nbf": robot.world.clock.seconds - 5000},
    "nbf 30 s ahead": lambda robot: {"nbf": robot.world.clock.seconds + 30},
    "jti": lambda robot: {"jti": f"once-{robot.id}"},
    "jti of 256 characters": lambda robot: {"jti": robot.id.ljust(256, "x")},
    "jti beyond ASCII": lambda robot: {"jti": f"überweisung-№1-{robot.id}"},
    "claims of its own": lambda robot: {"azp": "me", "nested": {"a": [1, 2, {"b": None}]}, "ratio": 0.5},
}


def test_valid_claims_get_token(robot: ServiceUserProgram) -> None:
    for claims in ACCEPTED.values():
        check_token_response(robot.request_token(**claims(robot)))


def test_harmless_header_parameters_are_accepted(world: World, robot: ServiceUserProgram) -> None:
    for header in ({"typ": "JWT"}, {"typ": "jwt"}, {"cty": "x"}, {"note": "of the sender"}):
        check_token_response(world.client.exchange_assertion(robot.assertion(header=header)))


AUD = "aud must be https://id.example.com"
MOMENT = "{} must be a whole number of seconds since 1970 (UTC)"

#: Audiences that are not exactly the issuer, by type or by a character.
WRONG_AUDIENCES: tuple[Any, ...] = (
    OMITTED, None, 1, "", [], [["https://id.example.com"]], ["https://id.example.com", "https://other.example"],
    ["https://id.example.com", "https://id.example.com"], {"https://id.example.com": 1}, "https://id.example.com/",
    "HTTPS://ID.EXAMPLE.COM", "https://id.example", "https://id.example.com.attacker.example", "id.example.com",
    "https://id.example.com:443", "https://id.example.com/oauth/v2/token", " https://id.example.com",
)  # fmt: skip

OWNERS: dict[str, tuple[Callable[[int], dict[str, Any]], str]] = {
    "sub of another": (lambda now: {"sub": "another"}, "sub must equal iss"),
    "sub missing": (lambda now: {"sub": OMITTED}, "sub must equal iss"),
    "sub null": (lambda now: {"sub": None}, "sub must equal iss"),
    **{f"aud {aud!r}": (lambda now, aud=aud: {"aud": aud}, AUD) for aud in WRONG_AUDIENCES},
    "iat missing": (lambda now: {"iat": OMITTED}, MOMENT.format("iat")),
    "iat null": (lambda now: {"iat": None}, MOMENT.format("iat")),
    "iat a text": (lambda now: {"iat": str(now)}, MOMENT.format("iat")),
    "iat true": (lambda now: {"iat": True}, MOMENT.format("iat")),
    "iat with a fraction": (lambda now: {"iat": now - 0.5}, MOMENT.format("iat")),
    "iat negative": (lambda now: {"iat": -1}, MOMENT.format("iat")),
    "iat in milliseconds": (lambda now: {"iat": now * 1000}, MOMENT.format("iat")),
    "iat 3601 s old": (lambda now: {"iat": now - 3601}, "iat is 3601 s ago, at most 3600 s are accepted"),
    "iat 0": (lambda now: {"iat": 0}, "iat is {now} s ago, at most 3600 s are accepted"),
    "iat 31 s ahead": (lambda now: {"iat": now + 31}, "iat is 31 s in the future"),
    "exp missing": (lambda now: {"exp": OMITTED}, MOMENT.format("exp")),
    "exp a text": (lambda now: {"exp": str(now + 60)}, MOMENT.format("exp")),
    "exp false": (lambda now: {"exp": False}, MOMENT.format("exp")),
    "exp with a fraction": (lambda now: {"exp": now + 60.5}, MOMENT.format("exp")),
    "exp beyond the year 9999": (lambda now: {"exp": 253402300800}, MOMENT.format("exp")),
    "exp 30 s ago": (lambda now: {"iat": now - 600, "exp": now - 30}, "assertion expired 30 s ago"),
    "exp 312 s ago": (lambda now: {"iat": now - 600, "exp": now - 312}, "assertion expired 312 s ago"),
    "exp equal to iat": (lambda now: {"exp": now}, "exp must be later than iat"),
    "exp before iat": (lambda now: {"iat": now + 20, "exp": now + 10}, "exp must be later than iat"),
    "exp too far off": (lambda now: {"exp": now + 86401}, "exp must be at most 86400 s after iat"),
    "nbf 31 s ahead": (lambda now: {"nbf": now + 31}, "nbf is 31 s in the future"),
    "nbf a text": (lambda now: {"nbf": "now"}, MOMENT.format("nbf")),
    "nbf null": (lambda now: {"nbf": None}, MOMENT.format("nbf")),
    "jti empty": (lambda now: {"jti": ""}, "jti must be a text of 1 to 256 characters"),
    "jti a number": (lambda now: {"jti": 1}, "jti must be a text of 1 to 256 characters"),
    "jti too long": (lambda now: {"jti": "x" * 257}, "jti must be a text of 1 to 256 characters"),
}


@pytest.mark.shows("2.3.3", "2.3.4")
def test_failures_after_signature_are_described(world: World, robot: ServiceUserProgram) -> None:
    """Security 2.4, 2.5 and 2.8: the sender has proved possession of the key."""
    now = world.clock.seconds
    for claims, description in OWNERS.values():
        answer = robot.request_token(**claims(now))
        check_oauth_error(answer, "invalid_grant", description=description.replace("{now}", str(now)))


def test_claims_are_checked_in_order(world: World, robot: ServiceUserProgram) -> None:
    """sub, aud, iat, exp, nbf, jti: each correction brings up the next error."""
    now = world.clock.seconds
    wrong: dict[str, Any] = {
        "sub": "another", "aud": "elsewhere", "iat": now - 4000, "exp": OMITTED, "nbf": now + 99, "jti": 1,
    }  # fmt: skip
    mendings = [
        ("sub must equal iss", {"sub": robot.id}),
        (AUD, {"aud": world.issuer}),
        ("iat is 4000 s ago, at most 3600 s are accepted", {"iat": now + 90}),
        ("iat is 90 s in the future", {"iat": now}),
        (MOMENT.format("exp"), {"exp": now - 40}),
        ("assertion expired 40 s ago", {"exp": now + 90000}),
        ("exp must be at most 86400 s after iat", {"exp": now + 60}),
        ("nbf is 99 s in the future", {"nbf": now}),
        ("jti must be a text of 1 to 256 characters", {"jti": "once"}),
    ]
    for complaint, mending in mendings:
        check_oauth_error(robot.request_token(**wrong), "invalid_grant", description=complaint)
        wrong |= mending
    check_token_response(robot.request_token(**wrong))


@pytest.mark.thorough
@pytest.mark.shows("2.3.5", "5.1.7")
def test_assertion_audience_must_be_issuer(three_host_world: World) -> None:
    """No other URL of the service is accepted."""
    robot = three_host_world.make_service_user_program()
    check_token_response(robot.request_token(aud="https://id.example.com"))
    for address in ("https://api.example.com", "https://login.example.com", "https://api.example.com/oauth/v2/token"):
        check_oauth_error(
            robot.request_token(aud=address), "invalid_grant", description="aud must be https://id.example.com"
        )


def test_signature_is_checked_before_any_claim(robot: ServiceUserProgram) -> None:
    """Security 2.8: claims under an invalid signature are not trusted."""
    token = sign_assertion(
        robot.claims(sub="x", aud="y", exp=1), robot.world.make_service_user_program().key, key_id=robot.key_id
    )
    check_oauth_error(robot.world.client.exchange_assertion(token), "invalid_grant", description=REFUSED)


@pytest.mark.shows("2.3.6", "5.1.6", "8.1")
def test_iat_age_limit_is_exact(world: World, robot: ServiceUserProgram) -> None:
    """§8: iat must not be older than one hour; no skew is added."""
    assertion = robot.assertion(exp=world.clock.seconds + 7200)
    world.clock.advance(3600)
    check_token_response(world.client.exchange_assertion(assertion))
    world.clock.advance(1)
    check_oauth_error(world.client.exchange_assertion(assertion), "invalid_grant")


@pytest.mark.shows("2.3.7")
def test_assertion_without_jti_is_reusable_until_expiry(world: World, robot: ServiceUserProgram) -> None:
    assertion = robot.assertion()
    check_token_response(world.client.exchange_assertion(assertion))
    world.clock.advance(329)
    check_token_response(world.client.exchange_assertion(assertion))
    world.clock.advance(1)
    check_oauth_error(
        world.client.exchange_assertion(assertion), "invalid_grant", description="assertion expired 30 s ago"
    )
