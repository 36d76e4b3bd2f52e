"""Settings: only this code parses ini strings, and an invalid value stops the start with its full key."""

from collections.abc import Mapping
from dataclasses import dataclass, fields
from datetime import timedelta
from enum import StrEnum
from pathlib import Path
from typing import Any

import pytest

from identity.settings import PREFIX, Settings, read_settings
from identity.settings_parser import InvalidSetting, describe_settings, duration, parse_settings, setting

SMALLEST: Mapping[str, str] = {
    "identity.issuer_url": "https://id.example.com",
    "identity.storage": "sql",
    "identity.plugins": "sql jwt_bearer",
    "identity.master_keys": "1:/etc/identity/master.key",
}


def settings(**changed: str | None) -> Settings:
    """The core's settings from a minimal ini file with these changes; None removes a key."""
    values = dict(SMALLEST) | {f"identity.{name}": value for name, value in changed.items()}
    return read_settings({key: value for key, value in values.items() if value is not None}).core


def problem(**changed: str | None) -> tuple[str, str]:
    with pytest.raises(InvalidSetting) as refusal:
        settings(**changed)
    assert str(refusal.value) == f"{refusal.value.key}: {refusal.value.message}"
    return refusal.value.key.removeprefix(PREFIX), refusal.value.message


# --- types ------------------------------------------------------------------------------------------------------------


class ColourSetting(StrEnum):
    RED = "red"
    BLUE = "blue"


@dataclass(frozen=True, kw_only=True)
class Every:
    """A setting of every type."""

    text: str = setting("Text.", default="")
    number: int = setting("Number.", default=0)
    flag: bool = setting("Flag.", default=False)
    span: timedelta = setting("Span.", default=timedelta(hours=1))
    file: Path | None = setting("File.", default=None)
    names: tuple[str, ...] = setting("Words.", default=())
    colour: ColourSetting = setting("Colour.", default=ColourSetting.RED)


def even(number: str) -> None:
    if int(number) % 2:
        raise ValueError("must be even")


@dataclass(frozen=True, kw_only=True)
class Bounded:
    """Settings with a restricted range."""

    port: int = setting("Port.", default=80, minimum=1, maximum=65535)
    workers: int = setting("Workers.", default=1, minimum=1)
    age: timedelta = duration("Age.", "1h", at_most="12h")
    pause: timedelta = duration("Pause.", "0", at_least="0", at_most=timedelta(days=1))
    numbers: tuple[str, ...] = setting("Numbers.", default=(), validator=even)


def read(**values: str) -> Any:
    return parse_settings(Every, values, "every.")


def test_spans_and_flags() -> None:
    seconds = {"90": 90, "90s": 90, "10m": 600, "12h": 12 * 3600, "30d": 30 * 24 * 3600, "5 m": 300, "0": 0}
    assert {text: read(span=text).span for text in seconds} == {
        text: timedelta(seconds=number) for text, number in seconds.items()
    }
    assert {read(flag=text).flag for text in ("true", "Yes", "ON", "1")} == {True}
    assert {read(flag=text).flag for text in ("false", "No", "OFF", "0")} == {False}


def test_other_types() -> None:
    settings = read(text=" a b ", number="-7", file="/etc/x", names=" a  b\n c ", colour="blue")
    assert settings == Every(
        text="a b", number=-7, file=Path("/etc/x"), names=("a", "b", "c"), colour=ColourSetting.BLUE
    )


def test_empty_optional_setting_is_none() -> None:
    """Two ini files can list the same keys."""
    assert read(file="").file is None


def test_defaults() -> None:
    assert read() == Every()


def test_bad_value_is_named_in_full() -> None:
    for name, message, texts in (
        ("number", "must be a whole number", ("1.5", "", "9" * 19, "１")),
        ("flag", "must be true or false", ("maybe", "")),
        ("span", "must be a span such as 3600, 90s, 10m, 12h or 30d", ("-1", "1w", "", "9" * 9 + "d")),
        ("colour", "must be one of red, blue", ("green",)),
    ):
        for text in texts:
            with pytest.raises(InvalidSetting) as refusal:
                read(**{name: text})
            assert (refusal.value.key, refusal.value.message) == (f"every.{name}", message)


def test_invalid_value_is_named_in_full() -> None:
    for name, message, texts in (
        ("port", "must be between 1 and 65535", ("0", "65536", "-1")),
        ("workers", "must be at least 1", ("0",)),
        ("age", "must be between 1s and 12h", ("0", "43201", "13h")),
        ("pause", "must be between 0s and 1d", ("25h",)),
        ("numbers", "must be even", ("2 3 4",)),
    ):
        for text in texts:
            with pytest.raises(InvalidSetting) as refusal:
                parse_settings(Bounded, {name: text}, "bounded.")
            assert (refusal.value.key, refusal.value.message) == (f"bounded.{name}", message)


def test_values_at_their_bounds_fit() -> None:
    bounded = parse_settings(Bounded, {"port": "65535", "age": "12h", "pause": "0", "numbers": "2 4"}, "bounded.")
    assert (bounded.port, bounded.age, bounded.pause, bounded.numbers) == (
        65535,
        timedelta(hours=12),
        timedelta(),
        ("2", "4"),
    )


def test_bounds_are_described() -> None:
    descriptions = ["Port. At most 65535.", "Workers.", "Age. At most 12h.", "Pause. At most 1d.", "Numbers."]
    assert [meaning for *_, meaning in describe_settings(Bounded)] == descriptions


def test_type_without_a_reader_raises() -> None:
    @dataclass(frozen=True)
    class Odd:
        """A setting of an unsupported type."""

        odd: complex = setting("Odd.", default=0j)

    with pytest.raises(TypeError, match="complex"):
        parse_settings(Odd, {"odd": "1"}, "odd.")


def test_describe_settings_lists_name_type_default_and_meaning() -> None:
    assert list(describe_settings(Every)) == [
        ("text", "text", "none", "Text."),
        ("number", "number", "0", "Number."),
        ("flag", "true or false", "false", "Flag."),
        ("span", "span", "1h", "Span."),
        ("file", "file", "none", "File."),
        ("names", "words", "none", "Words."),
        ("colour", "red | blue", "red", "Colour."),
    ]


def test_every_setting_of_the_core_is_described() -> None:
    for name, kind, default, meaning in describe_settings(Settings):
        assert kind, name
        assert default, name
        assert meaning.endswith("."), name


def test_shown_defaults_can_be_written_back() -> None:
    defaults = {name: default for name, _, default, _ in describe_settings(Settings)}
    spans = {field.name: defaults[field.name] for field in fields(Settings) if isinstance(field.default, timedelta)}
    assert settings(**spans) == settings()


# --- which keys -------------------------------------------------------------------------------------------------------


def test_missing_key_is_named() -> None:
    for name in ("issuer_url", "storage", "plugins"):
        assert problem(**{name: None}) == (name, "is missing")


def test_unknown_key_error_lists_known_keys() -> None:
    key, message = problem(issuer="https://id.example.com")
    assert key == "issuer"
    assert message.startswith(
        "is not known; is issuer_url meant? Known are: access_token_lifetime, assertion_audiences, "
    )
    key, message = problem(colour="red")
    assert message.startswith(
        "is not known; known are: access_token_lifetime, assertion_audiences, attempts_per_address, "
    )


def test_keys_of_other_libraries_are_ignored() -> None:
    assert read_settings({**SMALLEST, "pyramid.reload_templates": "true", "identityish": "1"}).core == settings()


def test_strings_of_plugins_are_sorted_out() -> None:
    file = read_settings({**SMALLEST, "identity.plugin.sql.url": "x", "identity.plugin.sql.pool.size": "1"})
    assert file.plugins == {"sql": {"url": "x", "pool.size": "1"}, "jwt_bearer": {}}


def test_setting_of_an_unlisted_plugin_is_refused() -> None:
    assert problem(**{"plugin.redis.url": "x"}) == (
        "plugin.redis",
        "is for a plugin that identity.plugins does not list",
    )


# --- what they mean ---------------------------------------------------------------------------------------------------


def test_addresses_default_to_the_issuer() -> None:
    core = settings()
    assert (core.base_url, core.login_url) == ("https://id.example.com", "https://id.example.com")
    assert core.default_domain == "id.example.com"
    empty = settings(base_url="", login_url="", default_domain="")
    assert empty == core


def test_three_addresses() -> None:
    core = settings(base_url="https://api.example.com", login_url="https://login.example.com:8443")
    assert (core.base_url, core.login_url) == ("https://api.example.com", "https://login.example.com:8443")


def test_address_is_scheme_and_host_alone() -> None:
    for url in (
        *("https://id.example.com/", "https://id.example.com/path", "https://id.example.com?x=1"),
        *("https://id.example.com#x", "https://user@id.example.com", "https://", "https://[::1", "https://a:x"),
        *("id.example.com", "ftp://id.example.com", "http://id.example.com", "http://localhost:8080"),
    ):
        for name in ("issuer_url", "base_url", "login_url"):
            key, message = problem(**{name: url})
            assert key == name
            assert message.startswith("must "), url


def test_plain_http_in_development_on_loopback() -> None:
    for url in ("http://localhost:8080", "http://127.0.0.1", "http://[::1]:8080"):
        assert settings(issuer_url=url, development="true").issuer_url == url


def test_plain_http_elsewhere_is_refused_in_development_too() -> None:
    key, _ = problem(issuer_url="http://id.example.com", development="true")
    assert key == "issuer_url"


def test_production_needs_a_master_key() -> None:
    key, message = problem(master_keys=None)
    assert (key, message.partition(":")[0]) == ("master_keys", "is missing")
    assert settings(master_keys=None, development="true").master_keys == ()


def test_values_out_of_range_are_named() -> None:
    for name, text in (
        *(("clock_skew", "301"), ("access_token_lifetime", "0"), ("access_token_lifetime", "13h")),
        *(("service_user_token_min_lifetime", "0"), ("service_user_token_min_lifetime", "13h")),
        *(("id_token_lifetime", "0"), ("id_token_lifetime", "13h"), ("jwks_max_age", "0"), ("purge_interval", "0")),
        *(("signing_key_active_age", "6m"), ("signing_key_bits", "1024"), ("signing_key_bits", "2047")),
        *(("hook_failure", "shrug"), ("urn_namespaces", ""), ("plugins", "")),
        *(("urn_namespaces", "service"), ("urn_namespaces", "urn:service"), ("urn_namespaces", "urn::iam")),
    ):
        key, message = problem(**{name: text})
        assert key == name
        assert message.startswith("must "), (name, text)


def test_derived_settings() -> None:
    core = settings(jwks_max_age="10m")
    assert core.key_announcement_period == timedelta(minutes=11)
