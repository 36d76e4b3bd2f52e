import pytest
from hypothesis import given
from hypothesis import strategies as st

from identity.crypto import base64url


@given(st.binary(max_size=64))
def test_encoding_round_trips(data: bytes) -> None:
    assert base64url.decode(base64url.encode(data)) == data


@given(st.text(max_size=20) | st.text(alphabet="ABab01-_+/=. \n", max_size=20))
def test_non_canonical_encoding_is_refused(text: str) -> None:
    try:
        data = base64url.decode(text)
    except ValueError:
        return
    assert base64url.encode(data) == text


@pytest.mark.parametrize("text", ["QQ==", "QR", "QQ=", "Q", "Q Q", "QQ\n", "+/+/", "QQQQ=", "QQé", "\ud800QQQ"])
def test_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"base64url|ASCII"):
        base64url.decode(text)
