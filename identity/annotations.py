"""The annotated names of classes on every supported Python.

Python 3.14 evaluates annotations lazily (PEP 649) and no longer keeps them in the class namespace.
"""

import sys
from inspect import get_annotations
from typing import Any

_AS: dict[str, Any] = {}
if sys.version_info >= (3, 14):
    from annotationlib import Format

    # As strings, because an annotation may name something that is imported only for type checkers.
    _AS["format"] = Format.STRING


def annotated_names(cls: type) -> set[str]:
    """The names that a class or one of its bases annotates."""
    return {name for item in cls.__mro__ for name in get_annotations(item, **_AS)}
