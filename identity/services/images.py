"""Sanitizes uploaded images: pixels are decoded and encoded again, drawings are rebuilt from an allow-list.

The uploaded bytes are never stored. A PNG or WebP image becomes a WebP image of its pixels; of an SVG drawing the
shapes stay, but nothing that could run, load or refer to anything outside.
"""

import base64
import hashlib
import io
import struct
import zlib
from dataclasses import dataclass

from identity.domain.errors import Invalid
from identity.domain.messages import gettext_lazy

#: The maximum size of an uploaded image and of a stored one.
MAX_UPLOAD_BYTES = 512 * 1024
MAX_STORED_BYTES = 40 * 1024

_MOST_PIXELS = 4_000_000
_LONGEST_SIDE = 4096
#: Sizes that a logo is scaled to, large enough for high-density screens; the next one if the result is too large.
_BOXES = ((1024, 192), (768, 144), (512, 96), (384, 72), (256, 48))
_RASTERS = (b"\x89PNG\r\n\x1a\n", b"RIFF")
_UNREADABLE = gettext_lazy("This picture cannot be read. Save it again as PNG, WebP or SVG.")
_TOO_MANY = gettext_lazy("This picture has too many pixels. Use one of at most 4096 by 976.")
#: Exceptions of the library for damaged files.
_DAMAGE = (OSError, SyntaxError, ValueError, EOFError, IndexError, KeyError, MemoryError, struct.error, zlib.error)

_TYPES = {"webp": "image/webp", "svg": "image/svg+xml"}


@dataclass(frozen=True, slots=True)
class SanitizedImage:
    """A safe image; ``extension`` names its format."""

    extension: str
    content: bytes

    @property
    def file_name(self) -> str:
        """A unique name: a digest of the content, and the extension."""
        return f"{hashlib.sha256(self.content).hexdigest()[:32]}.{self.extension}"

    @property
    def content_type(self) -> str:
        return _TYPES[self.extension]

    @property
    def base64_text(self) -> str:
        return base64.b64encode(self.content).decode()

    @classmethod
    def from_base64(cls, name: str, text: str) -> "SanitizedImage":
        """The inverse of ``file_name`` and ``base64_text``."""
        return cls(name.rpartition(".")[2], base64.b64decode(text))


def sanitize_base64_image(text: str) -> SanitizedImage:
    """Sanitize an uploaded image in base64. Raises Invalid, of ``logo``."""
    if len(text) > MAX_UPLOAD_BYTES * 4 // 3 + 4:
        raise _refused(_too_large())
    try:
        return sanitize_image(base64.b64decode(text, validate=True))
    except ValueError:
        raise _refused(gettext_lazy("Send the picture in base64.")) from None


def sanitize_image(content: bytes) -> SanitizedImage:
    """Sanitize an uploaded image. Raises Invalid, of ``logo``. The result is deterministic, and sanitizing it again
    does not change it."""
    if len(content) > MAX_UPLOAD_BYTES:
        raise _refused(_too_large())
    if content.startswith(_RASTERS):
        return SanitizedImage("webp", _raster(content))
    if content.removeprefix(b"\xef\xbb\xbf").lstrip().startswith(b"<"):
        # Imported on first use.
        from identity.services.svg_sanitizer import UnsafeSvg, sanitize_svg

        try:
            drawing = sanitize_svg(content)
        except UnsafeSvg as problem:
            raise _refused(problem.args[0]) from None
        if len(drawing) > MAX_STORED_BYTES:
            raise _refused(gettext_lazy("This drawing is too complex. Use a simpler one, of at most 40 KiB."))
        return SanitizedImage("svg", drawing)
    raise _refused(gettext_lazy("Choose a PNG, WebP or SVG file."))


def _raster(content: bytes) -> bytes:
    from PIL import Image

    try:
        with Image.open(io.BytesIO(content), formats=("PNG", "WEBP")) as opened:
            # Read from the header, before anything is decoded.
            if max(opened.size) > _LONGEST_SIDE or opened.width * opened.height > _MOST_PIXELS:
                raise _refused(_TOO_MANY)
            if getattr(opened, "n_frames", 1) > 1:
                raise _refused(gettext_lazy("This picture is animated. Use a still one."))
            opened.load()
            image = opened.convert("RGBA")
    except (Image.DecompressionBombError, Image.DecompressionBombWarning):
        raise _refused(_TOO_MANY) from None
    except _DAMAGE:
        raise _refused(_UNREADABLE) from None
    for box in _BOXES:
        fitting = image.copy()
        fitting.thumbnail(box)
        output = io.BytesIO()
        fitting.save(output, "WEBP", lossless=True, exact=True)
        if output.tell() <= MAX_STORED_BYTES:
            return output.getvalue()
    raise _refused(gettext_lazy("This picture has too many colours for a logo. Use a simpler one."))


def _too_large() -> str:
    return gettext_lazy("The picture is larger than {n} KiB.", n=MAX_UPLOAD_BYTES // 1024)


def _refused(sentence: str) -> Invalid:
    return Invalid({"logo": sentence})
