"""Static files: hashed names, immutable caching, size; colour tokens and their contrast."""

import re
from collections.abc import Iterator
from typing import Any

from identity.pages.static_files import FOLDER

from .conftest import PageBrowser

#: That of all pages, and that of the frame of account and console, which comes after it.
STYLES = tuple((FOLDER / name).read_text() for name in ("identity.css", "console.css"))

#: Colour pairs of pages §2 and their required contrast (WCAG 2.2, 1.4.6 and 1.4.11).
TEXT = [
    *(
        ("text", on)
        for on in ("page", "surface", "sunken", "accent-soft", "danger-soft", "warning-soft", "success-soft")
    ),
    *(("muted", on) for on in ("page", "surface", "sunken")),
    *(("accent", on) for on in ("page", "surface", "sunken", "accent-soft")),
    *(("accent-strong", on) for on in ("page", "surface", "sunken")),
    *(("on-accent", on) for on in ("accent", "accent-strong")),
    *(("danger", on) for on in ("page", "surface", "danger-soft")),
    *(("on-danger", on) for on in ("danger", "danger-strong")),
    ("warning", "warning-soft"),
    ("success", "success-soft"),
    ("plum", "plum-soft"),
    *((colour, on) for colour in ("rail-text", "rail-strong") for on in ("rail", "rail-raised")),
    ("rail-mark", "rail"),
]
OTHER = [
    *((colour, on) for colour in ("data-1", "data-2", "data-bad") for on in ("page", "surface", "sunken")),
    ("rail-mark", "rail-raised"),
    *(("control", on) for on in ("page", "surface", "sunken")),
    *(("focus", on) for on in ("page", "sunken")),
]


def addresses(browser: PageBrowser) -> Iterator[str]:
    for item in browser.pages.static:
        yield f"/static/{item.name}"


def test_static_files_are_immutable_with_hashed_names(browser: PageBrowser) -> None:
    found = list(addresses(browser))
    assert len(found) == 13
    for address in found:
        assert re.fullmatch(r"/static/[a-z_-]+-[0-9a-f]{16}\.(css|js|svg)", address)
        answer = browser.get(address)
        assert answer.status_int == 200
        assert answer.headers["Cache-Control"] == "public, max-age=31536000, immutable"
        assert answer.headers["X-Content-Type-Options"] == "nosniff"
        assert "Set-Cookie" not in answer.headers


def test_unknown_static_file_is_404(browser: PageBrowser) -> None:
    made_up = ("identity.css", "identity-0000000000000000.css", "..%2fidentity.css", "../__init__.py", "mark.svg", "")
    assert {browser.get(f"/static/{name}").status_int for name in made_up} == {404}


def test_static_file_content_types(browser: PageBrowser) -> None:
    kinds = {address.rpartition(".")[2]: browser.get(address).headers["Content-Type"] for address in addresses(browser)}
    texts = {kind: f"text/{name}; charset=utf-8" for kind, name in {"css": "css", "js": "javascript"}.items()}
    assert kinds == {**texts, "svg": "image/svg+xml"}


def test_static_files_are_served_to_unknown_hosts(browser: PageBrowser) -> None:
    """The error page that names the settings uses them."""
    for address in addresses(browser):
        assert browser.app.get(address, extra_environ={"HTTP_HOST": "127.0.0.1:8080"}).status_int == 200


def test_static_files_stay_small() -> None:
    assert len(STYLES[0].encode()) <= 24 * 1024
    assert sum(len(style.encode()) for style in STYLES) <= 60 * 1024
    assert sum(len(path.read_bytes()) for path in FOLDER.glob("*.js")) <= 12 * 1024
    assert {path.suffix for path in FOLDER.iterdir()} == {".css", ".js", ".svg"}


# --- tokens -----------------------------------------------------------------------------------------------------------


def tokens() -> tuple[dict[str, str], dict[str, str]]:
    """The colour tokens of the light and the dark scheme."""
    found = [dict(re.findall(r"--color-([a-z0-9-]+):\s*(#[0-9a-f]{6});", block)) for block in _schemes()]
    return found[0], found[0] | found[1]


def luminance(colour: str) -> float:
    parts = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(colour: str, other: str) -> float:
    dark, light = sorted((luminance(colour), luminance(other)))
    return (light + 0.05) / (dark + 0.05)


def test_colour_contrast_meets_wcag() -> None:
    for known in tokens():
        for needed, pairs in ((7.0, TEXT), (3.0, OTHER)):
            for colour, on in pairs:
                assert contrast(known[colour], known[on]) >= needed, (colour, on)


def test_colour_schemes_define_the_same_tokens() -> None:
    light, dark = (set(re.findall(r"--(?:color|shadow)-[a-z0-9-]+|--veil", block)) for block in _schemes())
    assert light == dark


def _schemes() -> tuple[str, str]:
    """The tokens of the light and the dark scheme, of both style sheets."""
    blocks = [re.findall(r":root \{(.*?)\n\s*\}", style, re.DOTALL)[:2] for style in STYLES]
    light, dark = ("\n".join(parts) for parts in zip(*blocks, strict=True))
    return light, dark


def test_colours_appear_only_in_tokens() -> None:
    rest = "".join(re.sub(r":root \{(.*?)\n\s*\}", "", style, count=2, flags=re.DOTALL) for style in STYLES)
    assert re.findall(r"#[0-9a-fA-F]{3,8}\b|rgb\(|hsl\(", re.sub(r"/\*.*?\*/", "", rest, flags=re.DOTALL)) == []


def test_style_sheet_loads_nothing() -> None:
    assert not re.search(r"url\(|@import|data:", "".join(STYLES))


def test_physical_directions_are_not_used() -> None:
    """Logical properties only."""
    assert not re.search(
        r"(?<![-\w])(margin|padding|border)-(left|right|top|bottom)\b|(?<![-\w])(left|right):", "".join(STYLES)
    )


def used(templates: Any) -> set[str]:
    return {
        name
        for path in templates
        for value in re.findall(r'class="([^"{]*)"', path.read_text())
        for name in value.split()
    }


def test_every_class_in_templates_has_a_style() -> None:
    templates = list(FOLDER.parent.glob("templates/*.html")) + list(
        FOLDER.parent.parent.glob("plugins/*/templates/**/*.html")
    )
    without = {"login__brand", "choice__text", "form"}
    # Previews of mails have the style of mails.
    styles = [*STYLES, (FOLDER.parent / "templates" / "mails" / "mail.css").read_text("utf-8")]
    known = set(re.findall(r"\.([a-z][a-z0-9_-]+)", "".join(styles))) | without
    assert used(templates) - known == set()
