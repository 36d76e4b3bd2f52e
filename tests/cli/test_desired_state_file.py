"""State files are parsed strictly: no implicit types, no anchors, no duplicate keys and no code."""

import re

import pytest

from identity.cli.command_context import CommandError
from identity.cli.desired_state_file import MAX_FILE_BYTES, read_desired_state_file


def read(tmp_path, text, name="state.yaml"):
    path = tmp_path / name
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return read_desired_state_file(path)


def test_texts_stay_texts(tmp_path):
    text = "a: 1990-12-31\nb: no\nc: 1.5\nd: '1'\ne: 0123\nf: 2027-01-01T00:00:00Z\ng: on\nh: =\ni: <<\n"
    assert read(tmp_path, text) == {
        "a": "1990-12-31",
        "b": "no",
        "c": "1.5",
        "d": "1",
        "e": "0123",
        "f": "2027-01-01T00:00:00Z",
        "g": "on",
        "h": "=",
        "i": "<<",
    }


def test_values_are_those_of_json(tmp_path):
    text = "a: true\nb: false\nc: null\nd: ~\ne:\nf: 3600\ng: -1\nh: [1, {i: j}]\n"
    expected = {"a": True, "b": False, "c": None, "d": None, "e": None, "f": 3600, "g": -1, "h": [1, {"i": "j"}]}
    assert read(tmp_path, text) == expected


def test_json_is_read_as_json(tmp_path):
    assert read(tmp_path, '\t{"a": "\\ud83d\\ude00", "b": [1.5, true]}', "state.json") == {"a": "😀", "b": [1.5, True]}


@pytest.mark.thorough
def test_invalid_documents_are_refused(tmp_path):
    for text, sentence in (
        ("a: 1\nb:\n  c: 1\n  c: 2\n", "line 4, column 3: the member “c” appears twice"),
        ("a: &x [1]\nb: *x\n", "line 1, column 4: aliases are not read here"),
        ("a: !!python/object/apply:os.system ['true']\n", "is not read here"),
        ("a: !!binary aGk=\n", "is not read here"),
        ("<<: {a: 1}\n<<: {b: 2}\n", "appears twice"),
        ("1: 2\n", "names are texts"),
        ("a: [1\n", "line 2"),
        ("a: 1\n---\nb: 2\n", "expected a single document"),
        ('a: "\\0"\n', "a NUL character"),
        ('a: "\\ud800"\n', "is not UTF-8"),
        (b"a: \xff\n", "is not UTF-8"),
        ("[" * 5000, "nested too deeply"),
        ("- 1\n", "must hold an object"),
        ("", "must hold an object"),
        ("#" * (MAX_FILE_BYTES + 1), "is larger than 4 MiB"),
    ):
        with pytest.raises(CommandError, match=re.escape(sentence)):
            read(tmp_path, text)


def test_invalid_json_documents_are_refused(tmp_path):
    for text, sentence in (
        ('{"a": 1, "a": 2}', "appears twice"),
        ('{"a": NaN}', "not a number"),
        ("a: 1", "not valid JSON at line 1, column 1"),
        ("[]", "a JSON object"),
    ):
        with pytest.raises(CommandError, match=re.escape(sentence)):
            read(tmp_path, text, "state.json")


def test_missing_file_is_reported(tmp_path):
    with pytest.raises(CommandError, match="There is no file"):
        read_desired_state_file(tmp_path / "none.yaml")
