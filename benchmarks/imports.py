"""What the imports of a start cost, by package: Python's own ``-X importtime``, summed up."""

import re
import subprocess
import sys
from collections import Counter

_LINE = re.compile(r"import time: +(\d+) \| +\d+ \| +([\w.]+)")
#: What pserve imports before a plugin is named.
_START = "import pyramid.scripts.pserve, identity.server.waitress_server, identity.app, identity.plugins.sql"
_SHOWN = 10


def table() -> str:
    """The packages whose own modules take longest, and how long, for the terminal."""
    command = [sys.executable, "-X", "importtime", "-c", _START]
    told = subprocess.run(command, capture_output=True, text=True, check=True).stderr
    spans: Counter[str] = Counter()
    for span, module in _LINE.findall(told):
        spans[module.partition(".")[0]] += int(span)
    rows = [f"  {name:<22}{span / 1000:6.0f} ms" for name, span in spans.most_common(_SHOWN)]
    return "\n".join(["", f"imports: {spans.total() / 1000:.0f} ms, of which", *rows])
