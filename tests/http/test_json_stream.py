"""Streamed JSON is parsed as strictly as a complete document."""

import io
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from identity.http import json_stream
from identity.http.error_views import MalformedRequest
from identity.http.json_stream import parse_json_stream
from identity.http.strict_json import parse_json_object

texts = st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=5)
values = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**62), 2**62) | texts,
    lambda inside: st.lists(inside, max_size=3) | st.dictionaries(texts, inside, max_size=3),
)


def streamed(text: str | bytes, **takers: Any) -> Any:
    content = text.encode() if isinstance(text, str) else text
    return parse_json_stream(io.BytesIO(content), {tuple(name.split("_")): taker for name, taker in takers.items()})


@pytest.mark.thorough
@given(value=st.dictionaries(texts, values, max_size=4), escaped=st.booleans())
def test_json_stream_matches_json_parser(value: Any, escaped: bool) -> None:
    """Some senders escape characters beyond the basic plane as two surrogates."""
    text = json.dumps(value, ensure_ascii=escaped)
    assert streamed(text) == parse_json_object(text) == value


WRONG = (
    "",
    "[1]",
    "1",
    '{"a": 1',
    '{"a": 1} x',
    '{\n  "format": }',
    '{"a": 1, "a": 2}',
    '{"a": {"b": 1, "c": 2, "b": 3}}',
    '{"a": "\\u0000"}',
    '{"\\u0000": 1}',
    '{"a": "\\ud800"}',
    '{"a": "\\udc00\\ud800"}',
    '{"\\ud83d": 1}',
    '{"a": NaN}',
    '{"a": 01}',
    "{\"a\": 'b'}",
    '{"a": "x\ny"}',
    '{"ü": "ü" x}',
    "// a\n{}",
    "\ufeff{}",
    b'{"a": "\xff"}',
    b'{"a": "\xed\xa0\x80"}',
    "[" * 5000,
    '{"a":' * 5000,
)


@pytest.mark.parametrize("text", WRONG)
def test_invalid_json_stream_is_refused(text: str | bytes) -> None:
    with pytest.raises(MalformedRequest):
        parse_json_object(text)
    with pytest.raises(MalformedRequest):
        streamed(text)


@pytest.mark.parametrize("lines", [0, 1, 7000])
def test_error_position_is_reported(lines: int) -> None:
    text = "{\n" + "".join(f'"{n}": ["ä", 1],\n' for n in range(lines))
    with pytest.raises(MalformedRequest, match=f"at line {lines + 2}, column 4"):
        streamed(text + '"ä"]}')


def test_top_level_list_is_streamed_by_item() -> None:
    items: list[Any] = []
    inner = {"users": [9]}
    text = json.dumps({"users": [1], "o": {"x": [inner], "users": [{"a": [1]}, [2], "z"], "n": 1}, "p": inner})
    assert streamed(text, o_users=lambda *item: items.append(item)) == {
        "users": [1],
        "o": {"x": [inner], "users": [], "n": 1},
        "p": inner,
    }
    assert items == [(0, {"a": [1]}), (1, [2]), (2, "z")]
    assert streamed('{"o": {"users": 5}}', o_users=items.append) == {"o": {"users": 5}}


def test_retained_data_is_limited_and_streamed_data_is_not(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(json_stream, "_MAX_STORED_VALUES", 50)
    text = json.dumps({"o": {"users": [{"a": n} for n in range(100)]}})
    assert streamed(text, o_users=lambda *_: None) == {"o": {"users": []}}
    with pytest.raises(MalformedRequest, match="larger than what can be read"):
        streamed(text)


@pytest.mark.thorough
@pytest.mark.parametrize("content", [b'{"a": "' + b"x" * 2**22, b'{"a": ' + b"1" * 2**22, b"{" + b" " * 2**22])
def test_single_token_length_is_limited(content: bytes) -> None:
    for escape in (b"", b'{"\\ud83d\\ude00": '):
        with pytest.raises(MalformedRequest, match="too long"):
            streamed(escape + content)
