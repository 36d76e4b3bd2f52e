"""Diagrams in the documentation name only what exists, and name all tables and layers."""

import re
import sys
import tomllib
from collections import Counter
from pathlib import Path
from typing import Any
from xml.etree.ElementTree import Element

from defusedxml.ElementTree import parse

from identity.plugins.sql.tables import metadata

ROOT = Path(__file__).parent.parent.parent
DOCS = ROOT / "docs"

sys.path.insert(0, str(DOCS / "_ext"))
reference_pages: Any = __import__("reference_pages")

SVG = "{http://www.w3.org/2000/svg}"
PICTURES = {path.stem: parse(path).getroot() for path in (DOCS / "pictures").glob("*.svg")}
#: Keywords of sequence blocks: alternative, optional, repeated.
BLOCKS = ("alt", "opt", "loop")
FLOWS = {name: picture for name, picture in PICTURES.items() if not name.startswith(("tables-", "layers"))}


def text_of(picture: Element, name: str) -> str:
    return "".join(picture.findtext(f"{SVG}{name}") or "")


def boxes(picture: Element, kind: str) -> list[list[str]]:
    """The texts that follow each box of this class."""
    found: list[tuple[str | None, list[str]]] = []
    for item in picture:
        if item.tag == f"{SVG}rect":
            found.append((item.get("class"), []))
        elif item.tag == f"{SVG}text" and found:
            found[-1][1].append("".join(item.itertext()))
    return [texts for box, texts in found if box == kind]


def table_boxes(kind: str) -> list[list[str]]:
    return [texts for name, picture in PICTURES.items() if name.startswith("tables-") for texts in boxes(picture, kind)]


def test_every_picture_is_on_a_page_and_has_a_text_alternative() -> None:
    used = {name for page in DOCS.rglob("*.rst") for name in re.findall(r"/pictures/([\w-]+)\.svg", page.read_text())}
    assert used == set(PICTURES)
    for name, picture in PICTURES.items():
        assert (picture.get("aria-labelledby"), picture.get("aria-describedby")) == (
            f"{name}-title",
            f"{name}-description",
        )
        assert picture.get("role") == "img"
        assert text_of(picture, "title"), name
        # The description contains all texts of the picture.
        description = re.sub(r"\W", "", text_of(picture, "desc"))
        lines = ["".join(text.itertext()) for text in picture.iterfind(f"{SVG}text") if text.get("class") != "number"]
        assert [line for line in lines if re.sub(r"\W", "", line) not in description and line not in BLOCKS] == [], name


def test_every_table_is_in_one_diagram() -> None:
    assert Counter(texts[0] for texts in table_boxes("table")) == Counter(list(metadata.tables))
    assert {texts[0] for texts in table_boxes("elsewhere")} <= set(metadata.tables)


def test_columns_in_diagrams_exist() -> None:
    for name, *texts in table_boxes("table"):
        drawn = re.findall(r"\w+", " ".join(texts))
        assert set(drawn) <= set(metadata.tables[name].columns.keys()), name
        references = {key.parent.name for key in metadata.tables[name].foreign_keys}
        assert references <= set(drawn), name


def test_diagram_of_layers_has_every_layer() -> None:
    text = text_of(PICTURES["layers"], "desc")
    (layers,) = (
        contract["layers"]
        for contract in tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"]
        if contract["type"] == "layers"
    )
    names = [name for layer in layers for name in layer.split(" | ")]
    positions = [text.index(f" {name}: ") for name in names]
    assert positions == sorted(positions)
    assert len(positions) > len(layers)
    drawn = [texts[0] for texts in boxes(PICTURES["layers"], "table")]
    assert drawn == [name.removeprefix("identity.") for name in names]


def test_modules_in_diagrams_exist() -> None:
    names = {
        "".join(span.itertext())
        for picture in FLOWS.values()
        for text in picture.iterfind(f"{SVG}text[@class='name']")
        for span in text.iterfind(f"{SVG}tspan[@class='code']")
    }
    assert len(names) > 3
    for name in names:
        paths = [folder.joinpath(*name.split(".")) for folder in (ROOT / "identity", ROOT / "identity" / "provider")]
        assert any(path.is_dir() or path.with_suffix(".py").is_file() for path in paths), name


def test_flow_addresses_match_endpoints() -> None:
    spoken = {
        item for picture in FLOWS.values() for item in re.findall(r"/oauth/v2/[\w/{}]+", text_of(picture, "desc"))
    }
    assert len(spoken) > 4
    assert spoken <= {endpoint.path for endpoint, _ in reference_pages.list_endpoints()}
