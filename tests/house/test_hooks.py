"""hookspecs.py: every hook is documented in one format, belongs to a family, and has a caller."""

import ast
import inspect
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import FunctionType

import pytest

from identity import hookspecs

ROOT = Path(__file__).parent.parent.parent
SOURCES = ROOT / "identity"
FAMILIES = ("setup", "offers", "contributions", "decisions", "notices")

HOOKS: dict[str, FunctionType] = {
    name: value for name, value in vars(hookspecs).items() if hasattr(value, "identity_spec")
}


def families() -> dict[str, str]:
    """The family of each hook, by the headings in the source."""
    found, family = {}, ""
    for line in inspect.getsource(hookspecs).splitlines():
        heading = re.match(r"# --- (\w+) -", line)
        family = heading[1] if heading else family
        hook = re.match(r"def (\w+)\(", line)
        if hook:
            found[hook[1]] = family
    return found


def documented(name: str) -> tuple[str, str, str]:
    """First line, text and example of a hook's docstring."""
    text = inspect.getdoc(HOOKS[name]) or ""
    first, _, rest = text.partition("\n\n")
    prose, _, example = rest.partition("Example::\n\n")
    return first, prose, inspect.cleandoc(example)


def test_hooks_are_declared() -> None:
    assert "identity_grant_types" in HOOKS
    assert set(HOOKS) == set(families())


def test_names_begin_alike() -> None:
    for name in HOOKS:
        assert name.startswith("identity_")


def test_docstring_has_the_shape() -> None:
    for name in HOOKS:
        first, prose, example = documented(name)
        assert "\n" not in first, f"{name}: the first line stands alone"
        assert first.endswith((".", ").")), f"{name}: the first line is a sentence"
        assert prose.startswith("Called "), f"{name}: when and how often it is called"
        assert re.search(r"\bReturns\b|Nothing is returned", prose), f"{name}: the result"
        assert re.search(r"\b[Aa]n\s+exception\b", prose), f"{name}: what an exception does"
        assert example, f"{name}: an example"


def test_every_argument_is_explained() -> None:
    for name in HOOKS:
        _, prose, _ = documented(name)
        for argument in inspect.signature(HOOKS[name]).parameters:
            assert re.search(rf"``{argument}\b", prose), f"{argument} is not explained"


def test_example_implements_the_hook() -> None:
    for name in HOOKS:
        (function,) = ast.parse(documented(name)[2]).body
        assert isinstance(function, ast.FunctionDef)
        assert function.name == name
        assert [ast.unparse(item) for item in function.decorator_list] == ["hookimpl"]
        arguments = [arg.arg for arg in function.args.args]
        assert arguments == ["self", *inspect.signature(HOOKS[name]).parameters]


def test_every_argument_and_result_has_a_type() -> None:
    for name in HOOKS:
        signature = inspect.signature(HOOKS[name])
        assert signature.return_annotation is not signature.empty
        assert all(item.annotation is not item.empty for item in signature.parameters.values())


def test_families_stand_in_their_order() -> None:
    order = [family for family in dict.fromkeys(families().values()) if family]
    assert tuple(order) == FAMILIES
    table = re.findall(r"^(\w+)\s+(?:once|per|after)", hookspecs.__doc__ or "", re.MULTILINE)
    assert tuple(table) == FAMILIES


def test_only_decisions_stop_at_the_first_answer() -> None:
    first = {name for name, hook in HOOKS.items() if hook.identity_spec["firstresult"]}  # type: ignore[attr-defined]
    assert first == {name for name, family in families().items() if family == "decisions"}


def test_every_hook_has_a_caller() -> None:
    """Code of the core calls each hook."""
    core = "".join(
        path.read_text()
        for path in SOURCES.rglob("*.py")
        if path.name != "hookspecs.py" and (SOURCES / "plugins") not in path.parents
    )
    assert [name for name in HOOKS if name not in core] == []


def test_only_pluggy_is_imported_to_read_the_hooks() -> None:
    code = "import sys; before = set(sys.modules); import identity.hookspecs; print(*(set(sys.modules) - before))"
    output = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    foreign = {name.partition(".")[0] for name in output} - set(sys.stdlib_module_names)
    assert foreign <= {"identity", "pluggy"}
    assert {name for name in output if name.startswith("identity")} == {"identity", "identity.hookspecs"}


#: Implementations with tryfirst or trylast, as file:line.
PLACED: set[str] = set()


@pytest.mark.thorough
def test_every_use_of_tryfirst_and_trylast_is_listed() -> None:
    assert set(_placed()) == PLACED


def _placed() -> Iterator[str]:
    for path in SOURCES.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if not isinstance(node, ast.Call) or not ast.unparse(node.func).endswith("hookimpl"):
                continue
            # ``optionalhook`` does not affect the order.
            if {keyword.arg for keyword in node.keywords} != {"optionalhook"}:
                yield f"{path.relative_to(ROOT)}:{node.lineno}"
