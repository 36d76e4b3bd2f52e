"""RFC 6238: test vectors, the window around the current step, and no code older than the last one used."""

import base64
from datetime import UTC, datetime, timedelta
from urllib.parse import parse_qsl, unquote, urlsplit

import pyotp
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from identity.plugins.totp.factor import new_secret, otpauth_uri, verify_code

#: RFC 6238 appendix B, SHA-1 rows: our six digits are the last six of its eight.
SECRET = base64.b32encode(b"12345678901234567890").decode()
TABLE = {
    59: "94287082",
    1111111109: "07081804",
    1111111111: "14050471",
    1234567890: "89005924",
    2000000000: "69279037",
    20000000000: "65353130",
}

moments = st.datetimes(datetime(1970, 1, 2), datetime(2200, 1, 1), timezones=st.just(UTC))


@pytest.mark.parametrize(("seconds", "digits"), TABLE.items())
def test_totp_matches_rfc_vectors(seconds: int, digits: str) -> None:
    moment = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(seconds=seconds)
    assert verify_code(SECRET, digits[-6:], moment) == seconds // 30


@given(now=moments, drift=st.integers(-300, 300), last=st.integers(-12, 12))
def test_totp_accepts_adjacent_steps_after_last_used(now: datetime, drift: int, last: int) -> None:
    secret = new_secret()
    app_time = now + timedelta(seconds=drift)
    present, step = int(now.timestamp()) // 30, int(app_time.timestamp()) // 30
    found = verify_code(secret, pyotp.TOTP(secret).at(app_time), now, last_used_step=present + last)
    if abs(step - present) <= 1 and step > present + last:
        assert found is not None
        assert present + last < found <= present + 1
    elif found is not None:
        # A code collides with that of another step once in a million.
        assert pyotp.TOTP(secret).generate_otp(found) == pyotp.TOTP(secret).at(app_time)
        assert found > present + last


@given(code=st.text(max_size=40), now=moments)
def test_malformed_totp_codes_are_refused(code: str, now: datetime) -> None:
    assert verify_code(SECRET, code, now) is None or "".join(code.split()).isdecimal()


def test_totp_secrets_have_160_bits() -> None:
    secrets = {new_secret() for _ in range(100)}
    assert len(secrets) == 100
    assert {len(base64.b32decode(item)) for item in secrets} == {20}


@given(login_name=st.text(min_size=1, max_size=300), issuer=st.text(min_size=1, max_size=300))
@example(login_name="\r", issuer="0")
def test_otpauth_uri_fits_into_qr_code(login_name: str, issuer: str) -> None:
    try:
        address = otpauth_uri(SECRET, login_name, issuer)
    except UnicodeEncodeError:
        return  # lone surrogates are refused in names
    assert address.startswith("otpauth://totp/")
    assert len(address) < 2900
    assert address.isascii()
    parts = urlsplit(address)
    names, parameters = parts.path.removeprefix("/").split(":"), dict(parse_qsl(parts.query))
    assert "/" not in "".join(names)
    assert parameters == {"secret": SECRET} | ({"issuer": unquote(names[0])} if "issuer" in parameters else {})
    assert (len(names) == 2) is ("issuer" in parameters and bool(login_name.replace(":", " ").split()))


@pytest.mark.parametrize(
    ("issuer", "label", "issuer_parameter"),
    [
        ("Acme GmbH", "Acme%20GmbH:ada%40acme.example", "Acme%20GmbH"),
        ("Acme: Sales", "Acme%20Sales:ada%40acme.example", "Acme%20Sales"),
        ("Müller & Söhne", "M%C3%BCller%20%26%20S%C3%B6hne:ada%40acme.example", "M%C3%BCller%20%26%20S%C3%B6hne"),
        ("株式会社", "%E6%A0%AA%E5%BC%8F%E4%BC%9A%E7%A4%BE:ada%40acme.example", "%E6%A0%AA%E5%BC%8F%E4%BC%9A%E7%A4%BE"),
        ("A/B?c=d#e", "A%2FB%3Fc%3Dd%23e:ada%40acme.example", "A%2FB%3Fc%3Dd%23e"),
        (":", "ada%40acme.example", None),
    ],
)
def test_otpauth_uri_encodes_names(issuer: str, label: str, issuer_parameter: str | None) -> None:
    query = f"secret={SECRET}" + ("" if issuer_parameter is None else f"&issuer={issuer_parameter}")
    assert otpauth_uri(SECRET, "ada@acme.example", issuer) == f"otpauth://totp/{label}?{query}"
