import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from identity.domain.errors import Invalid
from identity.domain.service_user_keys import KeyFile


def test_key_file_has_exactly_the_published_members() -> None:
    file = KeyFile(key_id="k", key="-----BEGIN RSA PRIVATE KEY-----", user_id="u")
    assert json.loads(file.to_json()) == {
        "type": "serviceaccount",
        "keyId": "k",
        "key": "-----BEGIN RSA PRIVATE KEY-----",
        "userId": "u",
    }
    assert KeyFile.from_json(file.to_json()) == file


def test_its_representation_keeps_the_key_to_itself() -> None:
    assert "PRIVATE" not in repr(KeyFile(key_id="k", key="PRIVATE", user_id="u"))


@given(
    st.one_of(st.text(), st.dictionaries(st.text(), st.text()).map(json.dumps), st.just('{"type":"serviceaccount"}'))
)
def test_invalid_key_is_refused_with_a_message(text: str) -> None:
    with pytest.raises(Invalid) as refusal:
        KeyFile.from_json(text)
    assert refusal.value.fields["key_file"].endswith(".")
