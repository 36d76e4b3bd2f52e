"""Hashes of the revisions, and of what they import: whatever has landed is never changed again.

``python -m identity.plugins.sql.migrations.hashes`` adds those of new revisions. It refuses if a recorded file changed.
"""

import hashlib
import sys
from pathlib import Path

FOLDER = Path(__file__).parent
_FILE = FOLDER / "hashes.txt"


def recorded() -> dict[str, str]:
    """The hashes by the names of their files, as they were recorded."""
    lines = (line.split() for line in _FILE.read_text().splitlines())
    return {name: digest for digest, name in lines}


def actual() -> dict[str, str]:
    """The hashes that the files have."""
    files = [*sorted(FOLDER.glob("versions/[0-9]*.py")), FOLDER / "indexes.py", FOLDER / "mariadb.py"]
    return {str(file.relative_to(FOLDER)): hashlib.sha256(file.read_bytes()).hexdigest() for file in files}


def main() -> int:
    """Record what is new; 1 if something that was recorded has changed or is gone."""
    before, now = recorded(), actual()
    changed = [name for name in before if before[name] != now.get(name)]
    for name in changed:
        print(f"{name} was changed or removed after it had landed: restore it, and add a revision.", file=sys.stderr)
    for name in sorted(now.keys() - before.keys()):
        print(f"recorded  {name}")
    added = {name: digest for name, digest in now.items() if name not in before}
    _FILE.write_text("".join(f"{digest}  {name}\n" for name, digest in sorted((before | added).items())))
    return 1 if changed else 0


if __name__ == "__main__":
    sys.exit(main())
