"""Where addresses and login names may go on in the next line."""

import re

from markupsafe import Markup, escape

#: A part that a line begins with: what stands before it ends with a sign, or is as long as a column may be.
_SEGMENT_PATTERN = re.compile(r"[^@._+-]{1,30}[._+-]*|@|[._+-]+")


def with_line_breaks(address: str) -> Markup:
    """The address, which may be broken before @ and after other signs, and never inside a word."""
    parts = _SEGMENT_PATTERN.findall(address)
    joined = Markup("")
    for part in parts:
        joined += Markup("<wbr>") * (bool(joined) and not joined.endswith("@")) + escape(part)
    return Markup('<span class="address">{}</span>').format(joined)
