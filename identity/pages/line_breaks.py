"""Line break opportunities in email addresses and login names."""

import re

from markupsafe import Markup, escape

#: A segment that may start a line: the text before it ends in a separator or fills a column.
_SEGMENT_PATTERN = re.compile(r"[^@._+-]{1,30}[._+-]*|@|[._+-]+")


def with_line_breaks(address: str) -> Markup:
    """The address with break opportunities before @ and after other separators, never inside a word."""
    parts = _SEGMENT_PATTERN.findall(address)
    joined = Markup("")
    for part in parts:
        joined += Markup("<wbr>") * (bool(joined) and not joined.endswith("@")) + escape(part)
    return Markup('<span class="address">{}</span>').format(joined)
