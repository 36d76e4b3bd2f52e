"""Reference pages of the public modules, read from their source."""

import ast
import inspect
from collections.abc import Container, Iterator
from importlib import import_module
from pathlib import Path

import identity
from identity.api import PUBLIC_MODULES, is_public

_ROOT = Path(identity.__file__).parent.parent
_CONTAINER = "identity.services.container"
_Function = ast.FunctionDef | ast.AsyncFunctionDef


def render_module_family(family: str) -> str:
    """The modules of a family: classes with their fields and methods, functions, each with what it says of itself.

    Written for Sphinx's own Python domain, so that every name can be linked to and searched for.
    """
    lines = [line for module in PUBLIC_MODULES[family] for path in _files(module) for line in _Module(path).lines()]
    if _CONTAINER in PUBLIC_MODULES[family]:
        lines += _render_services()
    return "\n".join(lines)


def _render_services() -> Iterator[str]:
    """The services that ``Services`` has and no plugin has to import."""
    (container,) = _files(_CONTAINER)
    tree = ast.parse(container.read_text("utf-8"))
    used_types = {ast.unparse(item.returns) for item in ast.walk(tree) if isinstance(item, _Function) and item.returns}
    for node in tree.body:
        if not isinstance(node, ast.ImportFrom) or not node.module or not node.module.startswith("identity.services."):
            continue
        if not is_public(node.module):
            yield from _Module(next(_files(node.module))).lines({name.name for name in node.names} & used_types)


def _files(module: str) -> Iterator[Path]:
    """The file of a module, or those of all modules in a package."""
    path = _ROOT.joinpath(*module.split("."))
    if not path.is_dir():
        yield path.with_suffix(".py")
        return
    for item in sorted(path.rglob("*.py")):
        parts = item.relative_to(_ROOT).with_suffix("").parts
        if "migrations" not in parts and not any(part.startswith("_") and part != "__init__" for part in parts):
            yield item


class _Module:
    """One module: its tree, and its lines for the comments that a tree leaves out."""

    def __init__(self, path: Path) -> None:
        source = path.read_text("utf-8")
        self._tree = ast.parse(source)
        self._source = source.splitlines()
        self._name = ".".join(part for part in path.relative_to(_ROOT).with_suffix("").parts if part != "__init__")
        self._qualify = _TypeQualifier(self._tree, self._name)

    def lines(self, names: Container[str] | None = None) -> list[str]:
        """Its section, of these names alone if they are given; nothing if nothing in it is public."""
        nodes = [item for item in self._tree.body if names is None or getattr(item, "name", "") in names]
        lines = [line for node in nodes for line in self._render_node(node)]
        title = f"``{self._name}``"
        head = [title, "-" * len(title), "", f".. py:currentmodule:: {self._name}", "", *_doc(self._tree)]
        return [*head, *lines] if lines else []

    def _render_node(self, node: ast.stmt, within: ast.ClassDef | None = None) -> Iterator[str]:
        if isinstance(node, ast.ClassDef) and _public(node.name):
            yield from _entry("class", node.name, _doc(node))
            yield from (f"   {line}".rstrip() for item in node.body for line in self._render_node(item, node))
        elif isinstance(node, _Function) and _public(node.name):
            yield from self._function(node, within)
        elif isinstance(node, ast.AnnAssign | ast.Assign):
            yield from self._value(node, within)

    def _value(self, node: ast.AnnAssign | ast.Assign, within: ast.ClassDef | None) -> Iterator[str]:
        """A field with its type, a member of an enumeration; others if something is said about it."""
        name = ast.unparse(node.target if isinstance(node, ast.AnnAssign) else node.targets[0])
        annotation = node.annotation if isinstance(node, ast.AnnAssign) else None
        description = self._comment(node) or _sentence(node.value)
        if _public(name) and (description or (within and (annotation or isinstance(node.value, ast.Constant)))):
            options = [f":type: {ast.unparse(self._qualify(annotation))}"] if annotation else []
            yield from _entry("attribute" if within else "data", name, description, [*options, *_default(node.value)])

    def _function(self, node: _Function, within: ast.ClassDef | None) -> Iterator[str]:
        decorators = {ast.unparse(item).rpartition(".")[2] for item in node.decorator_list}
        is_undocumented_override = within and not ast.get_docstring(node) and self._overrides(within.name, node.name)
        if node.name.startswith("test_") or is_undocumented_override or "setter" in decorators:
            return
        returns = f" -> {ast.unparse(self._qualify(node.returns))}" if node.returns else ""
        if decorators & {"property", "cached_property"}:
            yield from _entry("property", node.name, _doc(node), [f":type: {returns.removeprefix(' -> ')}"])
            return
        if within and "staticmethod" not in decorators:
            del (node.args.posonlyargs or node.args.args)[0]
        for item in ast.walk(node.args):
            if isinstance(item, ast.arg) and item.annotation:
                item.annotation = self._qualify(item.annotation)
        options = [
            f":{decorator}:"
            for decorator in ("abstractmethod", "classmethod", "staticmethod")
            if decorator in decorators
        ]
        signature = f"{node.name}({ast.unparse(node.args)}){returns}"
        yield from _entry("method" if within else "function", signature, _doc(node), options)

    def _overrides(self, class_name: str, name: str) -> bool:
        """True if a base class defines the method, and so documents it."""
        cls = getattr(import_module(self._name), class_name, object)
        return any(name in vars(base) for base in cls.__mro__[1:])

    def _comment(self, node: ast.stmt) -> list[str]:
        """The lines above that begin with ``#:``."""
        description: list[str] = []
        for line in reversed(self._source[: node.lineno - 1]):
            if not line.lstrip().startswith("#:"):
                break
            description.insert(0, line.strip().removeprefix("#:").strip())
        return description


def _public(name: str) -> bool:
    return not name.startswith("_")


def _entry(kind: str, signature: str, description: list[str], options: list[str] | None = None) -> Iterator[str]:
    yield from ("", f".. py:{kind}:: {' '.join(signature.split())}")
    yield from (f"   {line}" for line in options or ())
    yield ""
    yield from (f"   {line}".rstrip() for line in description)
    yield ""


class _TypeQualifier(ast.NodeTransformer):
    """Makes types of ours in annotations full names, which Sphinx can link; quotes around them go."""

    def __init__(self, tree: ast.Module, module: str) -> None:
        self._full = {node.name: f"{module}.{node.name}" for node in tree.body if isinstance(node, ast.ClassDef)}
        for node in ast.walk(tree):
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("identity."):
                self._full |= {name.asname or name.name: f"{node.module}.{name.name}" for name in node.names}

    def __call__(self, annotation: ast.expr) -> ast.expr:
        return ast.parse(ast.unparse(self.visit(annotation)), mode="eval").body

    def visit_Constant(self, node: ast.Constant) -> ast.expr:
        """A type between quotes."""
        return self.visit(ast.parse(node.value, mode="eval").body) if isinstance(node.value, str) else node

    def visit_Name(self, node: ast.Name) -> ast.expr:
        """A type."""
        return ast.Name(self._full.get(node.id, node.id))


def _default(value: ast.expr | None) -> list[str]:
    """The default of a field, where that is short."""
    if isinstance(value, ast.Call):
        value = next((keyword.value for keyword in value.keywords if keyword.arg == "default"), None)
    if isinstance(value, ast.Constant) or (isinstance(value, ast.Tuple) and not value.elts):
        return [f":value: {ast.unparse(value)}"]
    return []


def _sentence(value: ast.expr | None) -> list[str]:
    """The sentence that a field is declared with: a setting's own, or the hint of a field for people."""
    if not isinstance(value, ast.Call):
        return []
    for item in (*value.args[:1], *(keyword.value for keyword in value.keywords if keyword.arg == "hint")):
        text = item.args[0] if isinstance(item, ast.Call) and item.args else item
        if isinstance(text, ast.Constant) and isinstance(text.value, str):
            return [text.value] if " " in text.value else []
    return []


def _doc(node: ast.Module | ast.ClassDef | _Function) -> list[str]:
    """The paragraphs of a docstring that are prose: examples and tables stand on pages of their own."""
    lines: list[str] = []
    for paragraph in inspect.cleandoc(ast.get_docstring(node) or "").split("\n\n"):
        plain = not any(line.startswith((" ", "=", "-")) for line in paragraph.splitlines())
        if plain and paragraph and not paragraph.endswith("::"):
            lines += [*paragraph.splitlines(), ""]
    return lines
