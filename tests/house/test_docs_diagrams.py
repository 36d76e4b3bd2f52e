"""Pictures of the documentation: what they name exists, and a notation that cannot be drawn stops the build."""

import io
import re
import sys
import tomllib
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from docutils.core import publish_string
from docutils.parsers.rst import directives

from identity.plugins.sql.tables import metadata

ROOT = Path(__file__).parent.parent.parent
DOCS = ROOT / "docs"

sys.path.insert(0, str(DOCS / "_ext"))
diagram_directives: Any = __import__("diagram_directives")
reference_pages: Any = __import__("reference_pages")


def drawn(kind: str) -> Iterator[list[str]]:
    """The notation of each picture of this kind."""
    for path in [*DOCS.rglob("*.rst"), *DOCS.glob("*.txt")]:
        for notation in re.findall(rf"^\.\. {kind}:: .*\n\n((?:   .*\n|\n)+)", path.read_text(), re.MULTILINE):
            yield notation.splitlines()


FLOWS = "\n".join(line for notation in drawn("sequence") for line in notation)


def published(kind: str, *notation: str) -> tuple[str, str]:
    """The rendered page with this diagram, and the warnings."""
    directives.register_directive(kind, diagram_directives.DiagramDirective)
    page = "\n   ".join([f".. {kind}:: Something", "", *notation])
    against = io.StringIO()
    settings = {"warning_stream": against, "input_encoding": "unicode", "output_encoding": "unicode"}
    html = publish_string(page, source_path="page.rst", writer="html5", settings_overrides=settings)
    return str(html), against.getvalue()


def test_every_table_is_in_one_diagram() -> None:
    tokens = [token for notation in drawn("tables") for line in notation for token in line.split()]
    assert Counter(token for token in tokens if token[0] not in "-(") == Counter(list(metadata.tables))


def test_house_has_every_layer() -> None:
    text = published("house")[0]
    (layers,) = (
        contract["layers"]
        for contract in tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"]
        if contract["type"] == "layers"
    )
    positions = [text.index(f" {name}: ") for layer in layers for name in layer.split(" | ")]
    assert positions == sorted(positions)
    assert len(positions) > len(layers)


def test_diagram_participants_named_as_code_exist() -> None:
    names = re.findall(r"participant .*`(.+)`", FLOWS)
    assert len(names) > 3
    for name in names:
        paths = [folder.joinpath(*name.split(".")) for folder in (ROOT / "identity", ROOT / "identity" / "provider")]
        assert any(path.is_dir() or path.with_suffix(".py").is_file() for path in paths), name


def test_flow_addresses_match_endpoints() -> None:
    spoken = set(re.findall(r"/oauth/v2/[\w/{}]+", FLOWS))
    assert len(spoken) > 4
    assert spoken <= {endpoint.path for endpoint, _ in reference_pages.list_endpoints()}


@pytest.mark.parametrize(
    ("kind", "notation", "line", "message"),
    [
        ("sequence", ["participant a", "a->>b: words"], 4, "b is no participant"),
        ("sequence", ["participant a", "participant a"], 4, "a takes part already"),
        ("sequence", ["participant a", "", "a says words"], 5, "not understood: a says words"),
        ("sequence", ["participant a", "alt b", "a->>a: words"], 4, "alt has no end"),
        ("sequence", ["participant a", "a->>a: words", "opt b", "end"], 5, "nothing happens in opt"),
        ("sequence", ["participant a", "opt b", "a->>a: words", "else c", "end"], 6, "else without its beginning"),
        ("sequence", ["participant a", "a->>a: words", "end"], 5, "end without its beginning"),
        ("sequence", ["participant a", "participant b", "a->>a: words"], 3, "b does nothing"),
        ("tables", ["instance", "users badges"], 4, "there is no table badges"),
        ("tables", ["instance", "instance"], 4, "instance stands there already"),
        ("tables", ["instance", "passwords"], 4, "passwords refers to users, which is missing here"),
        ("tables", ["passwords instance (users)"], 3, "passwords refers to users, which is no neighbour of its column"),
    ],
)
def test_broken_notation_is_an_error_at_its_line(kind: str, notation: list[str], line: int, message: str) -> None:
    assert f"page.rst:{line}: (ERROR/3) {message}\n" in published(kind, *notation)[1]


def test_diagram_has_a_text_alternative() -> None:
    notation = (
        "participant a as Browser",
        "participant b",
        "opt it rains",
        "a->>b: a `code` & more",
        "end",
        "b->>b: rests",
    )
    html, against = published("sequence", *notation)
    assert not against
    assert ">Something</title>" in html
    assert ">Perhaps: it rains. 1. Browser to b: a code &amp; more. After that: 2. b: rests.</desc>" in html
    assert '<tspan class="code">code</tspan> &amp; more</text>' in html
