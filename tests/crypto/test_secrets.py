import math
import os
import re
import time
import uuid

import pytest

from identity.crypto import secrets


def test_id_is_a_uuid_of_version_7_in_the_usual_form() -> None:
    text = secrets.new_id()
    assert str(uuid.UUID(text)) == text
    assert uuid.UUID(text).version == 7


def test_ids_are_unique_and_ordered_by_time() -> None:
    assert len({secrets.new_id() for _ in range(10_000)}) == 10_000
    earlier = secrets.new_id()
    time.sleep(0.002)
    assert earlier < secrets.new_id()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")
def test_forked_workers_create_different_ids() -> None:
    secrets.new_id()
    out, into = os.pipe()
    for _ in range(2):
        child = os.fork()
        if child == 0:
            try:
                os.write(into, secrets.new_id()[-12:].encode())
            finally:
                os._exit(0)
        os.waitpid(child, 0)
    ends = os.read(out, 24)
    os.close(out)
    os.close(into)
    assert len(ends) == 24
    assert ends[:12] != ends[12:]


def test_client_id_is_an_id_without_dashes() -> None:
    text = secrets.new_client_id()
    assert re.fullmatch("[0-9a-f]{32}", text)
    assert uuid.UUID(text).version == 7


def test_id_and_client_id_have_different_forms() -> None:
    assert all(secrets.is_id(secrets.new_id()) for _ in range(100))
    assert not any(secrets.is_id(secrets.new_client_id()) for _ in range(100))
    good = secrets.new_id()
    for text in ("", good.upper(), good[:-1], f"{good}0", f"{good}\n", f" {good}", good.replace("-", "_"), "é" * 36):
        assert not secrets.is_id(text)


def test_token_is_alphanumeric_with_256_bits() -> None:
    tokens = {secrets.new_token() for _ in range(5000)}
    assert len(tokens) == 5000
    assert all(re.fullmatch("[A-Za-z0-9]{43}", token) for token in tokens)
    assert math.log2(62) * secrets.TOKEN_LENGTH >= 256


def test_every_character_of_a_token_is_equally_likely() -> None:
    text = "".join(secrets.new_token() for _ in range(5000))
    expected = len(text) / 62
    # Six standard deviations; reducing bytes modulo 62 without rejection would be off by fourteen.
    assert all(abs(text.count(letter) - expected) < 6 * math.sqrt(expected) for letter in set(text))
    assert len(set(text)) == 62


def test_too_few_usable_bytes_are_drawn_again(monkeypatch: pytest.MonkeyPatch) -> None:
    draws = [b"\xff" * 22 + b"A" * 42, b"\x00" * 64]
    monkeypatch.setattr(secrets.os, "urandom", lambda size: draws.pop(0))
    assert secrets.new_token() == "A" * 43
    assert draws == []


def test_password_can_be_read_out_and_typed() -> None:
    password = secrets.new_password()
    assert re.fullmatch("([a-hjkmnp-z2-9]{5}-){3}[a-hjkmnp-z2-9]{5}", password)
    assert 15 <= len(password) <= 256
    assert math.log2(31) * secrets.PASSWORD_GROUPS * secrets.PASSWORD_GROUP_LENGTH >= 80
    assert secrets.new_password() != password


def test_digest_is_sha_256() -> None:
    assert secrets.token_digest("abc").hex() == "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"


@pytest.mark.parametrize("token", ["", "\0", "\ud800", "é", "\U0001f511" * 10_000])
def test_digest_accepts_any_string(token: str) -> None:
    assert len(secrets.token_digest(token)) == 32


def test_lone_surrogates_do_not_share_a_digest() -> None:
    assert len({secrets.token_digest(token) for token in ("\ud800", "\udfff", "?", "")}) == 4


def test_same() -> None:
    assert secrets.constant_time_equal(b"abc", b"abc")
    assert not secrets.constant_time_equal(b"abc", b"abd")
    assert not secrets.constant_time_equal(b"abc", b"ab")
