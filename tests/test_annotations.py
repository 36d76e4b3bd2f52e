"""Which names classes annotate, on every Python."""

import ast
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

import identity
from identity.annotations import annotated_names

if TYPE_CHECKING:
    from nowhere import Unknown  # type: ignore[import-not-found]

PACKAGE = Path(identity.__file__).parent


class AnnotatedBase:
    below: "int"
    valued: ClassVar[int] = 1
    plain = 2


class Derived(AnnotatedBase):
    above: "Unknown"


class SilentClass(Derived):
    pass


def test_annotations_include_base_classes() -> None:
    assert annotated_names(AnnotatedBase) == {"below", "valued"}
    assert annotated_names(Derived) == annotated_names(SilentClass) == {"above", "below", "valued"}
    assert annotated_names(object) == set()


def test_dunder_annotations_is_not_read() -> None:
    """From Python 3.14 on they are not there."""
    for path in PACKAGE.rglob("*.py"):
        names = {item.value for item in ast.walk(ast.parse(path.read_bytes())) if isinstance(item, ast.Constant)}
        assert "__annotations__" not in names, path
