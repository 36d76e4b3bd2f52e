"""Writes llms.txt (https://llmstxt.org), a table of contents for language models: title, first sentence and source of
each page.
"""

from pathlib import Path
from typing import Any

from docutils import nodes

#: Folders in the order of the sections. Models may skip what "Optional" lists.
_SECTIONS = {
    "tutorials": "Tutorials",
    "how-to": "How-to guides",
    "reference": "Reference",
    "explanation": "Explanation",
    "contributors": "Optional",
}
#: Too many pages, each about one detail.
_LEFT_OUT = ("contributors/decisions/", "reference/plugin-api/")


def table_of_contents(environment: Any) -> str:
    """The file's text; links are relative to the site on which the service shows it."""
    start = environment.get_doctree("index")
    parts = [f"# {environment.config.project} {environment.config.version}", "", f"> {_first_paragraph(start)}"]
    for folder, title in _SECTIONS.items():
        parts += ["", f"## {title}", ""]
        parts += [_entry(environment, name) for name in sorted(environment.found_docs) if _is_listed(name, folder)]
    return "\n".join(parts) + "\n"


def _is_listed(name: str, folder: str) -> bool:
    return name.startswith(f"{folder}/") and not name.endswith("/index") and not name.startswith(_LEFT_OUT)


def _entry(environment: Any, name: str) -> str:
    summary = _first_paragraph(environment.get_doctree(name)).partition(". ")[0].rstrip(".:")
    link = f"[{environment.titles[name].astext()}](/docs/_sources/{name}.rst.txt)"
    return f"- {link}: {summary}." if summary else f"- {link}"


def _first_paragraph(document: nodes.document) -> str:
    found = next(iter(document.findall(nodes.paragraph)), None)
    return "" if found is None else " ".join(found.astext().split())


def setup(app: Any) -> dict[str, bool]:
    def write(app: Any, problem: Exception | None) -> None:
        if problem is None and app.builder.name == "html":
            Path(app.outdir, "llms.txt").write_text(table_of_contents(app.env), "utf-8")

    app.connect("build-finished", write)
    return {"parallel_read_safe": True}
