"""Reference pages of the public modules, read from their source: what stands there is what a plugin sees."""

import ast
import inspect
from collections.abc import Iterator
from pathlib import Path

import identity
from identity.public import MODULES

_ROOT = Path(identity.__file__).parent.parent
_Function = ast.FunctionDef | ast.AsyncFunctionDef


def public(family: str) -> str:
    """The modules of a family: classes with their fields and methods, functions, each with what it says of itself."""
    parts: list[str] = []
    for module in MODULES[family]:
        for name, path in _files(module):
            parts += _module(name, ast.parse(path.read_text("utf-8")))
    return "\n".join(parts)


def _files(module: str) -> Iterator[tuple[str, Path]]:
    """A module, or all modules of a package, with their files."""
    path = _ROOT.joinpath(*module.split("."))
    if path.is_dir():
        for one in sorted(path.rglob("*.py")):
            parts = [part for part in one.relative_to(_ROOT).with_suffix("").parts if part != "__init__"]
            if not any(part.startswith("_") for part in parts) and "migrations" not in parts:
                yield ".".join(parts), one
    else:
        yield module, path.with_suffix(".py")


def _module(name: str, tree: ast.Module) -> list[str]:
    told = [part for node in tree.body for part in _told(node)]
    title = f"``{name}``"
    return [title, "-" * len(title), "", *_doc(tree), *told] if told else []


def _told(node: ast.stmt, within: str = "") -> Iterator[str]:
    if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
        bases = ", ".join(ast.unparse(one) for one in node.bases)
        yield from _entry(f"class {node.name}" + (f"({bases})" if bases else ""), node)
        for one in node.body:
            yield from (f"   {line}".rstrip() for line in _told(one, within=node.name))
    elif isinstance(node, _Function) and not node.name.startswith("_"):
        if any(ast.unparse(one) == "property" or "cached_property" in ast.unparse(one) for one in node.decorator_list):
            yield from _entry(f"{node.name}: {ast.unparse(node.returns)}" if node.returns else node.name, node)
        else:
            returns = f" -> {ast.unparse(node.returns)}" if node.returns else ""
            yield from _entry(f"{node.name}({ast.unparse(node.args)}){returns}".replace("(self, ", "("), node)
    elif within and isinstance(node, ast.AnnAssign) and not ast.unparse(node.target).startswith("_"):
        yield from ("", f"``{ast.unparse(node.target)}: {ast.unparse(node.annotation)}``", "")
    elif within and isinstance(node, ast.Assign) and ast.unparse(node.value).startswith("_Made("):
        kind = ast.unparse(node.value).removeprefix("_Made(").removesuffix(")")
        yield from ("", f"``{ast.unparse(node.targets[0])}: {kind}``", "")


def _entry(shown: str, node: ast.ClassDef | _Function) -> Iterator[str]:
    yield from ("", f"``{' '.join(shown.replace('(self)', '()').split())}``")
    yield from (f"   {line}".rstrip() for line in _doc(node) or ["…"])
    yield ""


def _doc(node: ast.Module | ast.ClassDef | _Function) -> list[str]:
    """The paragraphs of a docstring that are prose: examples and tables stand on pages of their own."""
    told: list[str] = []
    for paragraph in inspect.cleandoc(ast.get_docstring(node) or "").split("\n\n"):
        plain = not any(line.startswith((" ", "=", "-")) for line in paragraph.splitlines())
        if plain and paragraph and not paragraph.endswith("::"):
            told += [*paragraph.splitlines(), ""]
    return told
