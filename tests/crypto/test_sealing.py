import base64
import hashlib
import os
import stat
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from identity.crypto.sealing import (
    MasterKey,
    Sealer,
    UnsealingError,
    create_master_key_file,
    read_master_keys,
)
from identity.domain.errors import Invalid

OLD = MasterKey("2024", os.urandom(32))
NEW = MasterKey("2025", os.urandom(32))
OTHER = MasterKey("2025", os.urandom(32))


def some_bytes(size: int) -> bytes:
    """Bytes without a pattern, equal in every run because test ids contain them."""
    return hashlib.shake_256(b"no pattern").digest(size)


def make_key_file(folder: Path, content: bytes | None = None, name: str = "key", mode: int = 0o600) -> Path:
    path = folder / name
    path.write_bytes(base64.b64encode(os.urandom(32)) if content is None else content)
    path.chmod(mode)
    return path


def refusal(*entries: str) -> str:
    with pytest.raises(Invalid) as caught:
        read_master_keys(entries)
    assert list(caught.value.fields) == ["master_keys"]
    return caught.value.fields["master_keys"]


class TestSealing:
    @given(plaintext=st.binary(max_size=200), associated=st.text(st.characters(), max_size=20))
    def test_sealed_text_opens(self, plaintext: bytes, associated: str) -> None:
        sealer = Sealer((NEW, OLD))
        sealed = sealer.seal(plaintext, associated_data=associated)
        assert sealer.open(sealed, associated_data=associated) == plaintext
        assert len(plaintext) < 16 or plaintext not in sealed

    @given(plaintext=st.binary(max_size=40), data=st.data())
    def test_any_flipped_bit_is_noticed(self, plaintext: bytes, data: st.DataObject) -> None:
        sealer = Sealer((NEW, OLD))
        sealed = bytearray(sealer.seal(plaintext, associated_data="kid"))
        bit = data.draw(st.integers(0, len(sealed) * 8 - 1))
        sealed[bit // 8] ^= 1 << bit % 8
        with pytest.raises(UnsealingError):
            sealer.open(bytes(sealed), associated_data="kid")

    @given(plaintext=st.binary(max_size=40), data=st.data())
    def test_any_missing_or_added_byte_is_noticed(self, plaintext: bytes, data: st.DataObject) -> None:
        sealer = Sealer((NEW,))
        sealed = sealer.seal(plaintext, associated_data="kid")
        for wrong in (sealed[: data.draw(st.integers(0, len(sealed) - 1))], sealed + b"\0", b"\0" + sealed):
            with pytest.raises(UnsealingError):
                sealer.open(wrong, associated_data="kid")

    @given(st.binary(max_size=80))
    def test_junk(self, junk: bytes) -> None:
        with pytest.raises(UnsealingError):
            Sealer((NEW,)).open(junk, associated_data="kid")

    @given(st.text(max_size=10), st.text(max_size=10))
    def test_another_place(self, sealed_for: str, opened_for: str) -> None:
        sealed = Sealer((NEW,)).seal(b"secret", associated_data=sealed_for)
        if sealed_for != opened_for:
            with pytest.raises(UnsealingError):
                Sealer((NEW,)).open(sealed, associated_data=opened_for)

    def test_equal_values_never_look_alike(self) -> None:
        sealer = Sealer((NEW,))
        assert len({sealer.seal(b"secret", associated_data="kid") for _ in range(1000)}) == 1000

    def test_first_key_seals_and_all_open(self) -> None:
        old = Sealer((OLD,)).seal(b"secret", associated_data="kid")
        both = Sealer((NEW, OLD))
        assert both.open(old, associated_data="kid") == b"secret"
        assert not both.is_current(old)
        new = both.seal(both.open(old, associated_data="kid"), associated_data="kid")
        assert both.is_current(new)
        assert Sealer((NEW,)).open(new, associated_data="kid") == b"secret"

    def test_missing_key_is_named(self) -> None:
        sealed = Sealer((OLD,)).seal(b"secret", associated_data="kid")
        with pytest.raises(UnsealingError, match="2024 is not among") as caught:
            Sealer((NEW,)).open(sealed, associated_data="kid")
        assert caught.value.key_id == "2024"

    def test_another_key_of_the_same_name(self) -> None:
        sealed = Sealer((NEW,)).seal(b"secret", associated_data="kid")
        with pytest.raises(UnsealingError, match="2025"):
            Sealer((OTHER,)).open(sealed, associated_data="kid")

    def test_value_cannot_be_moved_to_another_key_id(self) -> None:
        sealed = Sealer((MasterKey("2024", NEW.key),)).seal(b"secret", associated_data="kid")
        with pytest.raises(UnsealingError):
            Sealer((NEW,)).open(sealed.replace(b"2024", b"2025", 1), associated_data="kid")

    def test_is_current_refuses_junk(self) -> None:
        for junk in (b"", b"\x01", b"\x01\x00" + b"x" * 40, b"\x01\x04\xff\xff\xff\xff" + b"x" * 40, b"\x02" * 60):
            with pytest.raises(UnsealingError, match="not a sealed value"):
                Sealer((NEW,)).is_current(junk)

    def test_repr_contains_only_ids(self) -> None:
        assert repr(NEW) == "MasterKey(id='2025')"
        assert repr(Sealer((NEW, OLD))) == "Sealer(2025, 2024)"

    def test_key_sets(self) -> None:
        for keys in ((), (NEW, OTHER), (NEW, MasterKey("copy", NEW.key))):
            with pytest.raises(Invalid):
                Sealer(keys)

    @pytest.mark.parametrize("key_id", ["", "a b", "a:b", "é", "x" * 33, "a\n"])
    def test_ids_of_master_keys(self, key_id: str) -> None:
        with pytest.raises(Invalid):
            MasterKey(key_id, NEW.key)

    @pytest.mark.parametrize("length", [0, 16, 31, 33])
    def test_lengths_of_master_keys(self, length: int) -> None:
        with pytest.raises(Invalid):
            MasterKey("a", os.urandom(length))


class TestReading:
    def test_raw_base64_and_hexadecimal(self, tmp_path: Path) -> None:
        key = hashlib.sha256(b"a key with - and _ in base64url").digest()
        standard, url = base64.b64encode(key), base64.urlsafe_b64encode(key)
        for content in (
            key,
            standard,
            standard + b"\n",
            b" " + standard.rstrip(b"=") + b"\r\n",
            url,
            url.rstrip(b"="),
            key.hex().encode(),
            key.hex().upper().encode() + b"\n",
        ):
            path = make_key_file(tmp_path, content)
            assert read_master_keys([f"k1:{path}"]) == (MasterKey("k1", key),)

    def test_order_is_kept(self, tmp_path: Path) -> None:
        entries = [f"k{number}:{make_key_file(tmp_path, name=f'key{number}')}" for number in (2, 1, 3)]
        assert [key.id for key in read_master_keys(entries)] == ["k2", "k1", "k3"]

    def test_path_may_contain_a_colon(self, tmp_path: Path) -> None:
        assert read_master_keys([f" k1 : {make_key_file(tmp_path, name='a:b')} "])[0].id == "k1"

    @pytest.mark.parametrize("mode", [0o640, 0o620, 0o610, 0o604, 0o602, 0o601, 0o644, 0o666, 0o777])
    def test_file_open_to_others(self, tmp_path: Path, mode: int) -> None:
        path = make_key_file(tmp_path, mode=mode)
        assert f"chmod 600 {path}" in refusal(f"k1:{path}")

    def test_missing_file(self, tmp_path: Path) -> None:
        sentence = refusal(f"k1:{tmp_path / 'nowhere'}")
        assert "does not exist" in sentence
        assert "identity master-key" in sentence

    def test_irregular_file_is_refused(self, tmp_path: Path) -> None:
        os.mkfifo(tmp_path / "pipe", 0o600)
        assert "regular file" in refusal(f"k1:{tmp_path / 'pipe'}")
        assert "k1" in refusal(f"k1:{tmp_path}")
        assert "cannot be read" in refusal("k1:a\0b")

    @pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
    def test_unreadable_file(self, tmp_path: Path) -> None:
        assert "cannot be read" in refusal(f"k1:{make_key_file(tmp_path, mode=0o200)}")

    @pytest.mark.parametrize(
        "content",
        [
            b"",
            b"changeme",
            b"changeme" * 4,
            b"00112233445566778899aabbccddeeff",
            bytes(32),
            b"\xff" * 32,
            b"\x01\xfe" * 16,
            bytes(range(32)),
            bytes(range(0x80, 0xA0)),
            bytes(range(255, 223, -1)),
            b"0" * 64,
            b"deadbeef" * 8,
            b"A" * 43 + b"=",
            base64.b64encode(b"changeme" * 4),
            base64.b64encode(b"an all too well-known passphrase"),
            some_bytes(16),
            some_bytes(31),
            b"\xff" + some_bytes(32),
            base64.b64encode(some_bytes(16)),
            base64.b64encode(some_bytes(33)),
            some_bytes(16).hex().encode(),
            b"-----BEGIN RSA PRIVATE KEY-----\n",
            b"\xff" * 5000,
        ],
    )
    def test_content_that_is_no_key(self, tmp_path: Path, content: bytes) -> None:
        assert "identity master-key" in refusal(f"k1:{make_key_file(tmp_path, content)}")

    @pytest.mark.parametrize("entry", ["", ":", "k1", "k1:", ":path", "a b:path", f"{'x' * 33}:path", "k1: "])
    def test_entries_of_another_form(self, entry: str) -> None:
        assert "Entry 1" in refusal(entry)

    def test_empty_list_is_refused(self) -> None:
        assert "at least one" in refusal()

    def test_ids_and_keys_are_unique(self, tmp_path: Path) -> None:
        path, two = make_key_file(tmp_path), make_key_file(tmp_path, name="two")
        assert "twice" in refusal(f"k1:{path}", f"k1:{two}")
        assert "are the same" in refusal(f"k1:{path}", f"k2:{path}")

    def test_key_in_the_place_of_a_file_is_not_quoted(self) -> None:
        for text in (base64.b64encode(NEW.key).decode(), NEW.key.hex()):
            assert text not in refusal(text)
            assert text not in refusal(f"k1:{text}")


class TestCreating:
    def test_new_file_is_private_and_readable_by_us(self, tmp_path: Path) -> None:
        path = tmp_path / "master.key"
        create_master_key_file(path)
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
        assert len(base64.b64decode(path.read_bytes(), validate=False)) == 32
        assert len(read_master_keys([f"k1:{path}"])) == 1
        assert os.listdir(tmp_path) == ["master.key"]

    def test_umask_does_not_open_it(self, tmp_path: Path) -> None:
        before = os.umask(0)
        try:
            create_master_key_file(tmp_path / "key")
        finally:
            os.umask(before)
        assert stat.S_IMODE((tmp_path / "key").stat().st_mode) == 0o600

    def test_existing_file_is_kept(self, tmp_path: Path) -> None:
        path = make_key_file(tmp_path, b"precious", mode=0o644)
        with pytest.raises(FileExistsError):
            create_master_key_file(path)
        assert path.read_bytes() == b"precious"
        assert os.listdir(tmp_path) == ["key"]

    def test_dangling_link_is_kept(self, tmp_path: Path) -> None:
        (tmp_path / "link").symlink_to(tmp_path / "nowhere")
        with pytest.raises(FileExistsError):
            create_master_key_file(tmp_path / "link")

    def test_lost_race_for_key_file_changes_nothing(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        path = make_key_file(tmp_path, b"of the winner")
        monkeypatch.setattr(os.path, "lexists", lambda _: False)
        with pytest.raises(FileExistsError):
            create_master_key_file(path)
        assert path.read_bytes() == b"of the winner"
        assert os.listdir(tmp_path) == ["key"]

    def test_missing_folder_is_an_error(self, tmp_path: Path) -> None:
        with pytest.raises(FileNotFoundError):
            create_master_key_file(tmp_path / "nowhere" / "key")
