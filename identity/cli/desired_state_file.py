"""Reads desired-state files: YAML or JSON with plain values only.

This YAML subset has no aliases, tags or multiple documents. true, false, null and integers are as in JSON;
everything else is text, including dates.
"""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml

from identity.cli.command_context import CommandError

#: More than 10,000 users; split larger states into several files.
MAX_FILE_BYTES = 4 * 2**20


def read_desired_state_file(path: Path) -> Mapping[str, Any]:
    """The members of the object in the file. Raises CommandError with what to fix and where."""
    from identity.http.error_views import MalformedRequest

    try:
        content = path.read_bytes()
    except FileNotFoundError:
        raise CommandError(f"There is no file {path}.") from None
    except OSError as problem:
        raise CommandError(f"{path} cannot be read: {problem.strerror}.") from None
    if len(content) > MAX_FILE_BYTES:
        raise CommandError(f"{path} is larger than {MAX_FILE_BYTES // 2**20} MiB. Describe the rest in another file.")
    try:
        values = _parse_document(content.decode("utf-8"), is_json=path.suffix.lower() == ".json")
    except UnicodeError:
        raise CommandError(f"{path} is not UTF-8.") from None
    except RecursionError:
        raise CommandError(f"{path} is nested too deeply.") from None
    except yaml.MarkedYAMLError as problem:
        mark = problem.problem_mark
        position = "" if mark is None else f"line {mark.line + 1}, column {mark.column + 1}: "
        reason = ", ".join(item for item in (problem.context, problem.problem) if item)
        raise CommandError(f"{path}: {position}{reason}.") from None
    except MalformedRequest as problem:
        raise CommandError(f"{path}: {problem}") from None
    except (ValueError, yaml.YAMLError) as problem:
        raise CommandError(f"{path}: {problem}.") from None
    if not isinstance(values, dict):
        raise CommandError(f"{path} must hold an object with members such as version and organizations.")
    return values


def _parse_document(text: str, *, is_json: bool) -> Any:
    from identity.http.strict_json import parse_json_object, validate_strings

    if is_json:
        return parse_json_object(text)
    # A subclass of the safe loader that supports even less.
    values = yaml.load(text, Loader=_StrictYamlLoader)  # noqa: S506
    validate_strings(values)
    return values


class _StrictYamlLoader(yaml.SafeLoader):
    """Plain values only: no aliases, tags or duplicate members."""

    def compose_node(self, parent: Any, index: Any) -> Any:
        event = self.peek_event()  # type: ignore[no-untyped-call]
        if isinstance(event, yaml.AliasEvent) or getattr(event, "anchor", None) is not None:
            raise yaml.composer.ComposerError(None, None, "aliases are not read here", event.start_mark)
        return super().compose_node(parent, index)

    def construct_members(self, node: yaml.MappingNode) -> dict[str, Any]:
        members: dict[str, Any] = {}
        for key_node, value_node in node.value:
            name = self.construct_object(key_node, deep=True)
            if not isinstance(name, str):
                raise yaml.constructor.ConstructorError(None, None, "names are texts", key_node.start_mark)
            if name in members:
                problem = f"the member “{name}” appears twice"
                raise yaml.constructor.ConstructorError(None, None, problem, key_node.start_mark)
            members[name] = self.construct_object(value_node, deep=True)
        return members

    def construct_items(self, node: yaml.SequenceNode) -> list[Any]:
        return [self.construct_object(item, deep=True) for item in node.value]

    def refuse(self, node: yaml.Node) -> Any:
        raise yaml.constructor.ConstructorError(None, None, f"{node.tag} is not read here", node.start_mark)


_SCALARS = (
    ("tag:yaml.org,2002:null", r"(?:~|null|)\Z", "~n", lambda loader, node: None),
    ("tag:yaml.org,2002:bool", r"(?:true|false)\Z", "tf", lambda loader, node: node.value == "true"),
    ("tag:yaml.org,2002:int", r"-?(?:0|[1-9][0-9]{0,17})\Z", "-0123456789", lambda loader, node: int(node.value)),
)
# Remove the inherited resolvers first.
_StrictYamlLoader.yaml_implicit_resolvers = {}
_StrictYamlLoader.yaml_constructors = {}
for _tag, _pattern, _first, _construct in _SCALARS:
    _StrictYamlLoader.add_implicit_resolver(
        _tag, re.compile(_pattern), list(_first) + ([""] if _tag.endswith("null") else [])
    )
    _StrictYamlLoader.add_constructor(_tag, _construct)
_StrictYamlLoader.add_constructor("tag:yaml.org,2002:str", lambda loader, node: node.value)
_StrictYamlLoader.add_constructor("tag:yaml.org,2002:seq", _StrictYamlLoader.construct_items)
_StrictYamlLoader.add_constructor("tag:yaml.org,2002:map", _StrictYamlLoader.construct_members)
_StrictYamlLoader.add_constructor(None, _StrictYamlLoader.refuse)
