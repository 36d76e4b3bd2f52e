"""The names that classes annotate.

From Python 3.14 on annotations are made when they are asked for (PEP 649), and a class does not keep them as it did.
"""

import sys
from inspect import get_annotations
from typing import Any

_AS: dict[str, Any] = {}
if sys.version_info >= (3, 14):
    from annotationlib import Format

    # As texts, since what an annotation names may be imported for type checkers alone.
    _AS["format"] = Format.STRING


def annotated_names(cls: type) -> set[str]:
    """The names that a class annotates, or one that it is derived from."""
    return {name for item in cls.__mro__ for name in get_annotations(item, **_AS)}
