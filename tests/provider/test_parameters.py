from contextlib import suppress
from urllib.parse import parse_qsl, urlencode

import pytest
from hypothesis import given
from hypothesis import strategies as st

from identity.provider.errors import InvalidRequest
from identity.provider.parameters import MAX_BODY_LENGTH, MAX_PARAMETERS, SECRET_PARAMETERS, Parameters

names = st.text(st.characters(codec="utf-8", exclude_characters="\0"), min_size=1, max_size=20)
values = st.text(st.characters(codec="utf-8", exclude_characters="\0"), min_size=1, max_size=50)


@given(st.binary(max_size=300))
def test_any_form_is_parsed_or_refused_with_description(encoded: bytes) -> None:
    with suppress(InvalidRequest):
        Parameters.parse(encoded)


@given(st.text("ab=&+%;2047cC3Ä\t ", max_size=40))
def test_parsing_matches_standard_library(text: str) -> None:
    with suppress(InvalidRequest):
        read = Parameters.parse_leniently(text.encode())
        pairs = [(name, value) for name, value in parse_qsl(text, errors="strict") if value]
        assert {name: read.get_values(name) for name in (*read, *read.repeated) if read.get_values(name)} == {
            name: tuple(value for item, value in pairs if item == name) for name, _ in pairs
        }


@given(st.dictionaries(names, values, max_size=20))
def test_encoded_form_round_trip(form: dict[str, str]) -> None:
    assert dict(Parameters.parse(urlencode(form).encode())) == form


@given(st.dictionaries(names, values, min_size=1, max_size=5), st.data())
def test_duplicate_parameter_is_refused(form: dict[str, str], data: st.DataObject) -> None:
    again = data.draw(st.sampled_from(sorted(form)))
    pairs = data.draw(st.permutations([*form.items(), (again, data.draw(values))]))
    with pytest.raises(InvalidRequest, match="given twice"):
        Parameters.parse(urlencode(pairs).encode())


@pytest.mark.parametrize(
    "encoded",
    [b"a=%", b"a=%f", b"a=%zz", b"a=%ff", b"a=\xc3\xa4", b"a=%00", b"a=1&a=1", b"a=&a="],
)
def test_broken_encodings_are_refused(encoded: bytes) -> None:
    with pytest.raises(InvalidRequest):
        Parameters.parse(encoded)


def test_form_limits_are_enforced() -> None:
    Parameters.parse("&".join(f"p{i}=1" for i in range(MAX_PARAMETERS)).encode())
    with pytest.raises(InvalidRequest, match="more than"):
        Parameters.parse("&".join(f"p{i}=1" for i in range(MAX_PARAMETERS + 1)).encode())
    Parameters.parse(b"p=" + b"x" * MAX_BODY_LENGTH)
    with pytest.raises(InvalidRequest, match="too long"):
        Parameters.parse(b"p=" + b"x" * (MAX_BODY_LENGTH + 1))


def test_empty_parameter_counts_as_absent() -> None:
    parameters = Parameters.parse(b"scope=&grant_type=x")
    assert parameters.get_value("scope") is None
    assert parameters.get_space_delimited("scope") == ()
    with pytest.raises(InvalidRequest, match="scope is missing"):
        parameters.require_value("scope")


@pytest.mark.parametrize("name", sorted(SECRET_PARAMETERS))
def test_secrets_in_query_are_refused(name: str) -> None:
    with pytest.raises(InvalidRequest, match="never in the address"):
        Parameters.refuse_secrets(f"x=1&{name}=secret".encode())
    Parameters.refuse_secrets(b"x=1")
