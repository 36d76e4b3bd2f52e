"""What holds of every page that people see."""

from typing import Any

import html5lib


def check_page(answer: Any, status: int, title: str, *, main_buttons: int = 1) -> Any:
    """The page, strictly parsed: status and h1 as given, names that lead to something, one thing to do at most."""
    assert answer.status_int == status, answer
    tree = html5lib.HTMLParser(strict=True, namespaceHTMLElements=False).parse(answer.text)
    assert ["".join(one.itertext()).strip() for one in tree.iter("h1")] == [title]
    elements = list(tree.iter())
    known = [one.attrib["id"] for one in elements if "id" in one.attrib]
    assert len(known) == len(set(known))
    for one in elements:
        for name in ("for", "aria-describedby", "aria-labelledby", "form", "list"):
            assert set(one.attrib.get(name, "").split()) <= set(known), (one.tag, one.attrib)
        assert "style" not in one.attrib
    assert sum("autofocus" in one.attrib for one in elements) <= 1
    classes = [set(one.attrib.get("class", "").split()) for one in elements]
    assert sum(bool(one & {"button--primary", "button--danger"}) for one in classes) <= main_buttons
    assert answer.headers["Cache-Control"] == "no-store"
    assert "script-src 'self'" in answer.headers["Content-Security-Policy"]
    return tree
