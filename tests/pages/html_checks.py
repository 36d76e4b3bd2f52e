"""Checks that apply to every page."""

from typing import Any

import html5lib


def check_page(answer: Any, status: int, title: str, *, main_buttons: int = 1) -> Any:
    """The strictly parsed page, after checking status, h1, references and the number of primary buttons."""
    assert answer.status_int == status, answer
    tree = html5lib.HTMLParser(strict=True, namespaceHTMLElements=False).parse(answer.text)
    assert ["".join(item.itertext()).strip() for item in tree.iter("h1")] == [title]
    elements = list(tree.iter())
    known = [element.attrib["id"] for element in elements if "id" in element.attrib]
    assert len(known) == len(set(known))
    for element in elements:
        for name in ("for", "aria-describedby", "aria-labelledby", "form", "list"):
            assert set(element.attrib.get(name, "").split()) <= set(known), (element.tag, element.attrib)
        assert "style" not in element.attrib
    assert sum("autofocus" in element.attrib for element in elements) <= 1
    classes = [set(element.attrib.get("class", "").split()) for element in elements]
    assert sum(bool(item & {"button--primary", "button--danger"}) for item in classes) <= main_buttons
    assert answer.headers["Cache-Control"] == "no-store"
    assert "script-src 'self'" in answer.headers["Content-Security-Policy"]
    return tree
