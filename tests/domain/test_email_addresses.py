import re

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from identity.domain.email_addresses import email_key
from identity.domain.validators import email_problem

_ADDRESSES = st.from_regex(r"[\w.+'-]{1,20}@[\w-]{1,10}\.[\w-]{2,10}", fullmatch=True)


@pytest.mark.parametrize(
    ("address", "key"),
    [
        ("Ada@ACME.example", "ada@acme.example"),
        (" ada@acme.example\n", "ada@acme.example"),
        ("a@MÜLLER.example", "a@xn--mller-kva.example"),
        ("a@XN--MLLER-KVA.example", "a@xn--mller-kva.example"),
        ("a@straße.example", "a@xn--strae-oqa.example"),
        ("ÄDA@acme.example", "Äda@acme.example"),
        ("o'brien+x@acme.example", "o'brien+x@acme.example"),
    ],
)
def test_email_key_folds_ascii_case_and_asks_dns_for_the_domain(address: str, key: str) -> None:
    assert email_key(address) == key


@pytest.mark.parametrize(
    ("first", "other"),
    [
        ("ﬁona@acme.example", "fiona@acme.example"),
        ("straße@acme.example", "strasse@acme.example"),
        ("\u212a@acme.example", "k@acme.example"),
        ("zoe\u0308@acme.example", "zoë@acme.example"),
        ("ａda@acme.example", "ada@acme.example"),
        ("a@straße.example", "a@strasse.example"),
        ("a@οδος.example", "a@οδοσ.example"),
        ("a.da@acme.example", "ada@acme.example"),
    ],
)
def test_email_key_distinguishes_unicode_lookalikes(first: str, other: str) -> None:
    assert email_key(first) != email_key(other)


@pytest.mark.parametrize(
    "address",
    ["", "@", "a", "a@", "@b.example", "a@b", "a@b.", "a@.b", "a@@b.example", "a b@c.example", "a@-b.example",
     "a@b_c.example", "\ud800@b.example", "a@\ud800.example", "a\x00@b.example", f"{'a' * 65}@b.example",
     f"a@{'b' * 64}.example", f"a@{'b.' * 130}example", "a@ac\u212ae.example", "a@ａcme.example", "a@STRAẞE.example",
     "a@İ.example", "a@b\u200d.example", "a@mu\u0308ller.example", "a@acme。example", "<a@b.example>",
     'a"b@c.example'],
)  # fmt: skip
def test_email_key_of_an_invalid_address_is_none(address: str) -> None:
    assert email_key(address) is None


@given(st.text() | _ADDRESSES)
@example("a@\u1e9e.de")
def test_email_key_is_its_own_key_and_ascii_after_the_at(text: str) -> None:
    key = email_key(text)
    if key is not None:
        assert email_key(key) == key
        assert re.fullmatch(r"[a-z0-9.-]+", key.rpartition("@")[2])
        assert key.encode()


@given(_ADDRESSES)
def test_email_key_ignores_no_more_than_the_case_of_ascii_letters_in_the_local_part(address: str) -> None:
    local_part, _, _ = address.rpartition("@")
    key = email_key(address)
    if key is not None:
        kept_part = key.rpartition("@")[0]
        assert len(kept_part) == len(local_part)
        assert all(a == b or (b.isascii() and a == b.lower()) for a, b in zip(kept_part, local_part, strict=True))


@pytest.mark.thorough
@given(st.from_regex(r"[a-z0-9._+-]{1,20}@[a-z]{1,9}\.[a-z]{2,5}", fullmatch=True))
def test_email_key_of_a_plain_address_is_the_address(address: str) -> None:
    assert email_problem(address) is None
    assert email_key(address) == address == email_key(address.upper())
