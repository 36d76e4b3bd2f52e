"""Logos: a stored image is small, runs nothing, and loads or refers to nothing, whatever was uploaded."""

import base64
import io
import re
import struct
import zlib
from contextlib import suppress

import pytest
from defusedxml.ElementTree import fromstring
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image
from PIL.PngImagePlugin import PngInfo

from identity.domain.errors import Invalid
from identity.services.images import (
    MAX_STORED_BYTES,
    MAX_UPLOAD_BYTES,
    SanitizedImage,
    sanitize_base64_image,
    sanitize_image,
)

SVG = "http://www.w3.org/2000/svg"
NAMES = f'xmlns="{SVG}" xmlns:xlink="http://www.w3.org/1999/xlink" xmlns:ev="http://www.w3.org/2001/xml-events"'


def drawing(inside: str, attributes: str = "", before: str = "") -> bytes:
    return f'{before}<svg {NAMES} viewBox="0 0 100 20" {attributes}>{inside}<path d="M0 0h9v9z"/></svg>'.encode()


#: Hostile parts that are removed while the rest of the drawing is kept.
LEFT_OUT = {
    "script": "<script>alert(1)</script>",
    "script in a namespace": '<x:script xmlns:x="http://www.w3.org/2000/svg">alert(1)</x:script>',
    "html script": '<s xmlns="http://www.w3.org/1999/xhtml"><script>alert(1)</script></s>',
    "onload": '<g onload="alert(1)"><rect onclick="alert(1)" onmouseover="alert(1)" width="9" height="9"/></g>',
    "foreignObject": '<foreignObject><body xmlns="http://www.w3.org/1999/xhtml" onload="alert(1)"/></foreignObject>',
    "use": '<use href="https://evil.example/x.svg#a"/><use xlink:href="#a"/>',
    "image": '<image href="https://evil.example/x.png"/><image xlink:href="data:image/svg+xml,alert"/>',
    "feImage": '<filter id="f"><feImage href="https://evil.example/x"/></filter><rect filter="url(#f)"/>',
    "link": '<a href="javascript:alert(1)"><text>click</text></a><a xlink:href="https://evil.example">x</a>',
    "animation": '<set attributeName="href" to="javascript:alert(1)"/><animate attributeName="d" values="alert"/>',
    "handler": '<handler ev:event="load">alert(1)</handler><listener event="load"/>',
    "css url": '<rect style="fill:url(https://evil.example/x)" fill="url(//evil.example/x)" width="9" height="9"/>',
    "css url in disguise": '<rect fill="u\\72l(https://evil.example/x)" stroke="URL( https://evil.example )"/>',
    "css url after its own": '<rect fill="url(#a) url(https://evil.example/x)" stroke="url(#a)evil.example"/>',
    "css function": '<rect fill="image-set(&quot;https://evil.example/x&quot; 1x)" stroke="src(https://evil.example)"/>',
    "css import": '<rect style="@import url(https://evil.example/x.css);behavior:url(evil.htc);-moz-binding:url(e)"/>',
    "gradient elsewhere": '<linearGradient id="g" xlink:href="https://evil.example/g.svg#g"/>',
    "marker and mask": '<mask id="m"/><path marker-start="url(https://evil.example)" mask="url(https://evil.example)"/>',
    "pattern": '<pattern id="p"><rect fill="url(#p)"/></pattern>',
    "base": '<g xml:base="https://evil.example/"><path d="M0 0"/></g>',
    "comment and instruction": "<!-- evil.example --><?xml-stylesheet href='https://evil.example/x.css'?>",
    "drawing in a drawing": '<svg onload="alert(1)"><script>alert(1)</script></svg>',
    "metadata": "<metadata>evil.example</metadata><title>A logo</title>",
}

#: Texts that no sanitized drawing contains.
NEVER = re.compile(
    rb"evil|alert|script|on\w+=|foreignobject|<use|<image|href=\"[^#]|style=|data:|<!|<\?|\\|@import|<a |<set|<animate|"
    rb"filter|<pattern|base=|https?://(?!www\.w3\.org/2000/svg)",
    re.IGNORECASE,
)

REFUSED = {
    "entity": drawing("<text>&e;</text>", before='<!DOCTYPE svg [<!ENTITY e "alert">]>'),
    "file": drawing("<text>&e;</text>", before='<!DOCTYPE svg [<!ENTITY e SYSTEM "file:///etc/passwd">]>'),
    "parameter entity": drawing("", before='<!DOCTYPE svg [<!ENTITY % e SYSTEM "https://evil.example/x"> %e;]>'),
    "billion laughs": drawing(
        "<text>&i;</text>",
        before='<!DOCTYPE svg [<!ENTITY a "ha">'
        + "".join(f'<!ENTITY {b} "{f"&{a};" * 10}">' for a, b in zip("abcdefgh", "bcdefghi", strict=True))
        + "]>",
    ),
    "style sheet": drawing("<style>path { fill: url(https://evil.example) }</style>"),
    "no size": f'<svg xmlns="{SVG}"><path d="M0 0"/></svg>'.encode(),
    "no number": f'<svg xmlns="{SVG}" viewBox="0 0 nan 20"/>'.encode(),
    "endless": f'<svg xmlns="{SVG}" viewBox="0 0 1e999 20"/>'.encode(),
    "html": b"<html><script>alert(1)</script></html>",
    "no namespace": b'<svg viewBox="0 0 1 1"/>',
    "cut off": drawing("<g><g>")[:-8],
    "deep": drawing("<g>" * 5000 + "</g>" * 5000),
    "many": drawing("<g/>" * 20_000),
    "large": drawing("<path d='" + "M0 0 " * 20_000 + "'/>"),
    "unknown encoding": b"<?xml version='1.0' encoding='nonsense'?>" + drawing(""),
    "nothing": b"",
    "gif": b"GIF89a" + bytes(100),
    "jpeg": b"\xff\xd8\xff\xe0" + bytes(100),
    "text": b"hello",
}


@pytest.mark.parametrize("inside", LEFT_OUT.values(), ids=LEFT_OUT)
def test_hostile_svg_parts_are_removed(inside: str) -> None:
    picture = sanitize_image(drawing(inside, 'onload="alert(1)" style="background:url(https://evil.example)"'))
    assert picture.content_type == "image/svg+xml"
    assert NEVER.findall(picture.content) == []
    root = fromstring(picture.content)
    assert root.tag == f"{{{SVG}}}svg"
    assert root.findall(f"{{{SVG}}}path")[-1].get("d") == "M0 0h9v9z"
    assert sanitize_image(picture.content) == picture


@pytest.mark.parametrize("content", REFUSED.values(), ids=REFUSED)
def test_unsafe_image_is_refused(content: bytes) -> None:
    with pytest.raises(Invalid) as refused:
        sanitize_image(content)
    assert set(refused.value.fields) == {"logo"}


def test_harmless_svg_parts_are_kept() -> None:
    sent = drawing(
        '<title>Acme</title><defs><linearGradient id="a" xlink:href="#b" gradientTransform="rotate(45)"/>'
        '<linearGradient id="b"><stop offset="0" style="stop-color:#f00; stop-opacity: .5"/></linearGradient>'
        '<clipPath id="c"><rect width="9" height="9" clip-path="url(#c)"/></clipPath></defs>'
        '<g clip-path="url(#c)" transform="translate(1 2)"><circle r="3" fill="url(#a)" style="fill:rgb(1,2,3)"/></g>'
        "<text>Acme <tspan>GmbH</tspan> &amp; Co</text>",
        'width="500" height="100" preserveAspectRatio="xMinYMid"',
        before='<?xml version="1.0"?><!DOCTYPE svg PUBLIC "-//W3C//DTD SVG 1.1//EN" "http://www.w3.org/svg11.dtd">',
    )
    root = fromstring(sanitize_image(sent).content)
    assert (root.get("viewBox"), root.get("width"), root.get("preserveAspectRatio")) == ("0 0 100 20", None, "xMinYMid")
    gradient, stops = root.findall(f".//{{{SVG}}}linearGradient")
    assert (gradient.get("href"), gradient.get("gradientTransform")) == ("#b", "rotate(45)")
    assert stops[0].attrib == {"offset": "0", "stop-color": "#f00", "stop-opacity": ".5"}
    clip, group, circle = (root.find(f".//{{{SVG}}}{name}") for name in ("clipPath", "g", "circle"))
    assert clip is not None
    assert "clip-path" not in clip[0].attrib
    assert group is not None
    assert group.get("clip-path") == "url(#c)"
    assert circle is not None
    assert circle.get("fill") == "rgb(1,2,3)"
    text = root.find(f"{{{SVG}}}text")
    assert text is not None
    assert "".join(text.itertext()) == "Acme GmbH & Co"


@settings(max_examples=300)
@given(value=st.text("urlURL()#:/;, \\'\"%&<>0ax\t\n", max_size=30))
def test_svg_has_no_external_references(value: str) -> None:
    escaped = value.replace("&", "&amp;").replace("<", "&lt;").replace('"', "&quot;")
    sanitized = sanitize_image(drawing(f'<rect fill="{escaped}" style="stroke:{escaped}"/>')).content.decode()
    for inside in re.findall(r"url\s*\(([^)]*)", sanitized, re.IGNORECASE):
        assert re.fullmatch(r"\s*(&quot;|'|)#[\w.:-]+\1\s*", inside)
    assert "\\" not in sanitized


# --- PNG and WebP -----------------------------------------------------------------------------------------------------


def raster(kind: str = "PNG", size: tuple[int, int] = (300, 60), **options: object) -> bytes:
    image, output = Image.new("RGBA", size, (200, 30, 60, 128)), io.BytesIO()
    image.save(output, kind, **options)  # type: ignore[arg-type]
    return output.getvalue()


def opened(picture: SanitizedImage) -> Image.Image:
    image = Image.open(io.BytesIO(picture.content))
    image.load()
    return image


@pytest.mark.parametrize("kind", ["PNG", "WEBP"])
def test_raster_image_is_reencoded(kind: str) -> None:
    picture = sanitize_image(raster(kind, lossless=True) if kind == "WEBP" else raster(kind))
    image = opened(picture)
    assert (picture.content_type, image.format, image.size) == ("image/webp", "WEBP", (300, 60))
    assert image.getpixel((5, 5)) == (200, 30, 60, 128)
    assert sanitize_image(picture.content) == picture
    assert (
        sanitize_base64_image(picture.base64_text)
        == picture
        == SanitizedImage.from_base64(picture.file_name, picture.base64_text)
    )


def test_raster_metadata_is_removed() -> None:
    hidden = PngInfo()
    hidden.add_text("Comment", "<script>alert(1)</script>")
    sanitized_image = sanitize_image(
        raster(pnginfo=hidden, icc_profile=b"script" * 50) + b"<script>alert(1)</script>PK\x03\x04"
    )
    assert b"script" not in sanitized_image.content
    assert not {"exif", "icc_profile", "xmp", "Comment"} & opened(sanitized_image).info.keys()


def test_large_image_is_scaled_down() -> None:
    picture = sanitize_image(raster(size=(2000, 400)))
    assert opened(picture).size == (960, 192)


def test_colourful_image_is_scaled_until_it_fits() -> None:
    noise, output = Image.effect_noise((400, 100), 90).convert("RGB"), io.BytesIO()
    noise.save(output, "PNG")
    picture = sanitize_image(output.getvalue())
    assert len(picture.content) <= MAX_STORED_BYTES
    assert sanitize_image(picture.content) == picture


def _header(width: int, height: int) -> bytes:
    """A PNG whose header claims this size, with almost no data."""
    chunks = ((b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 6, 0, 0, 0)), (b"IDAT", zlib.compress(bytes(99))))
    parts = [
        struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data)) for kind, data in chunks
    ]
    return b"\x89PNG\r\n\x1a\n" + b"".join(parts) + b"\0\0\0\0IEND\xaeB`\x82"


def _moving(kind: str) -> bytes:
    frames, output = [Image.new("RGBA", (40, 20), colour) for colour in ("red", "green", "blue")], io.BytesIO()
    frames[0].save(output, kind, save_all=True, append_images=frames[1:], duration=100)
    return output.getvalue()


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (_header(50_000, 50_000), "too many pixels"),
        (_header(4_000, 4_000), "too many pixels"),
        (_header(4_097, 1), "too many pixels"),
        (_header(2**31 - 1, 2**31 - 1), "too many pixels"),
        (_moving("PNG"), "animated"),
        (_moving("WEBP"), "animated"),
        (raster()[:-200], "cannot be read"),
        (raster()[:60], "cannot be read"),
        (raster("WEBP")[:30], "cannot be read"),
        (b"\x89PNG\r\n\x1a\n" + bytes(100), "cannot be read"),
        (b"RIFF\xff\xff\xff\xffWEBPVP8L" + bytes(50), "cannot be read"),
        (b"RIFF\0\0\0\0AVI " + bytes(50), "cannot be read"),
        (_header(0, 0), "cannot be read"),
        (bytes(MAX_UPLOAD_BYTES + 1), "larger than 512 KiB"),
    ],
)
def test_large_animated_or_damaged_image_is_refused(content: bytes, message: str) -> None:
    with pytest.raises(Invalid, match=message):
        sanitize_image(content)


@settings(max_examples=200, deadline=None)
@given(cuts=st.lists(st.tuples(st.integers(8, 400), st.binary(min_size=1, max_size=6)), min_size=1, max_size=6))
def test_damaged_image_is_refused(cuts: list[tuple[int, bytes]]) -> None:
    content = bytearray(raster(size=(40, 20)))
    for at, bits in cuts:
        content[at % len(content) : at % len(content) + len(bits)] = bits
    with suppress(Invalid):
        assert len(sanitize_image(bytes(content)).content) <= MAX_STORED_BYTES


@pytest.mark.parametrize("text", ["%%%", "aGk", "é", "A" * 800_000])
def test_invalid_base64_is_refused(text: str) -> None:
    with pytest.raises(Invalid):
        sanitize_base64_image(text)


def test_image_type_is_detected_by_content() -> None:
    sanitized_image, image = sanitize_image(drawing("")), sanitize_image(drawing("<g/>"))
    assert sanitized_image.file_name != image.file_name
    assert re.fullmatch(r"[0-9a-f]{32}\.svg", sanitized_image.file_name)
    assert base64.b64decode(sanitized_image.base64_text) == sanitized_image.content
