"""Accent colours: which have enough contrast, and the nearest colour to one that does not."""

import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import identity.pages
from identity.domain.branding import DEFAULT_BRANDING, Branding, merge_branding
from identity.domain.colours import (
    DARK_SCHEME,
    LIGHT_SCHEME,
    MIN_CONTRAST,
    ColourScheme,
    contrast,
    dark_accent_problem,
    derive_accent,
    light_accent_problem,
    min_contrast,
    nearest_readable_colour,
)
from identity.pages.page_branding import DEFAULT_PAGE_BRANDING

COLOURS = st.integers(0, 0xFFFFFF).map(lambda number: f"#{number:06x}")
SCHEMES = pytest.mark.parametrize("scheme", [LIGHT_SCHEME, DARK_SCHEME], ids=["light", "dark"])


def test_contrast_of_known_pairs() -> None:
    assert contrast("#000000", "#ffffff") == pytest.approx(21)
    assert contrast("#777777", "#ffffff") == pytest.approx(4.48, abs=0.005)
    assert contrast("#2540ad", "#2540ad") == 1


@pytest.mark.thorough
@SCHEMES
@given(colour=COLOURS)
def test_nearest_colour_passes_and_no_nearer_one_does(scheme: ColourScheme, colour: str) -> None:
    found = nearest_readable_colour(colour, scheme)
    assert min_contrast(found, scheme) >= MIN_CONTRAST
    assert nearest_readable_colour(found, scheme) == found
    if min_contrast(colour, scheme) >= MIN_CONTRAST:
        assert found == colour
        return
    # One step back towards the requested colour no longer has enough contrast.
    steps = [_mixed(colour, scheme.mix_colour, part / 255) for part in range(256)]
    assert all(min_contrast(step, scheme) < MIN_CONTRAST for step in steps[: steps.index(found)])


@given(colour=COLOURS)
def test_refusal_suggests_an_accepted_colour(colour: str) -> None:
    for problem in (light_accent_problem, dark_accent_problem):
        message = problem(colour)
        if message is not None:
            named = re.findall(r"#[0-9a-f]{6}", message)[-1]
            assert problem(named) is None


@pytest.mark.thorough
@SCHEMES
@given(colour=COLOURS)
def test_text_on_the_accent_has_enough_contrast(scheme: ColourScheme, colour: str) -> None:
    accent = derive_accent(nearest_readable_colour(colour, scheme), scheme)
    assert contrast(accent.foreground, accent.base) >= MIN_CONTRAST
    assert contrast(accent.foreground, accent.strong) >= MIN_CONTRAST
    assert contrast(accent.base, accent.soft) >= MIN_CONTRAST
    text = {"light": "#141829", "dark": "#e9ecf6"}["light" if scheme is LIGHT_SCHEME else "dark"]
    assert contrast(text, accent.soft) >= 7


@pytest.mark.parametrize("text", ["", "2540ad", "#2540a", "#2540adff", "red", "#2540ag", "#2540ad\n", "url(#a)"])
def test_invalid_colour_is_refused(text: str) -> None:
    assert light_accent_problem(text) == "Enter a colour such as #2540ad."


def test_grounds_are_those_of_the_style_sheet() -> None:
    style = (Path(identity.pages.__file__).parent / "static" / "identity.css").read_text()
    light, dark = (dict(re.findall(r"--color-([a-z-]+): (#[0-9a-f]{6})", part)) for part in style.split("@media")[:2])
    for scheme, tokens in ((LIGHT_SCHEME, light), (DARK_SCHEME, dark)):
        assert scheme.backgrounds == tuple(tokens[name] for name in ("page", "surface", "sunken"))
        assert scheme.surface == tokens["surface"]


def test_mails_have_the_colours_of_pages() -> None:
    folder = Path(identity.pages.__file__).parent
    style, mail = (folder / "static" / "identity.css").read_text(), (folder / "templates/mails/mail.css").read_text()
    light, dark = style.split("@media")[:2]
    in_light, in_dark = mail.split("@media")
    for colours, tokens in ((in_light, light), (in_dark, dark)):
        found = set(re.findall(r"#[0-9a-f]{6}", colours))
        assert found
        assert found <= set(re.findall(r"#[0-9a-f]{6}", tokens))
    assert f"--color-accent: {DEFAULT_PAGE_BRANDING.light.base};" in light
    assert f"--color-accent: {DEFAULT_PAGE_BRANDING.dark.base};" in dark


def test_application_counts_before_its_organization_and_colours_stay_together() -> None:
    organization = Branding(
        display_name="Acme", accent="#2540ad", accent_dark="#aebeff", login_title={"en": "Hello", "de": "Hallo"}
    )
    application = Branding(accent="#007d3f", login_title={"en": "Invoices"}, logo="x.svg")
    both = merge_branding(application, organization)
    assert both.display_name == "Acme"
    assert both.accent_dark == ""
    assert both.accent_colours == ("#007d3f", nearest_readable_colour("#007d3f", DARK_SCHEME))
    assert both.login_title == {"en": "Invoices", "de": "Hallo"}
    assert merge_branding(DEFAULT_BRANDING, organization) == organization
    assert DEFAULT_BRANDING.accent_colours is None


def _mixed(first: str, other: str, part: float) -> str:
    pairs = [(int(first[at : at + 2], 16), int(other[at : at + 2], 16)) for at in (1, 3, 5)]
    return "#" + "".join(f"{round(a + (b - a) * part):02x}" for a, b in pairs)
