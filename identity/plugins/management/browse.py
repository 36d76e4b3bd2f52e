"""The document of the API and a page to browse it, both for whoever asks: neither holds anything secret."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

from markupsafe import Markup
from pyramid.config import Configurator
from pyramid.request import Request
from pyramid.response import Response
from pyramid.security import NO_PERMISSION_REQUIRED

from identity.http.locale import language_of
from identity.plugins.management import conditions
from identity.plugins.management.engine import JSON, PREFIX, ROUTE
from identity.plugins.management.openapi import document

_METHODS = ("get", "post", "patch", "delete")
_MAX_AGE = 300


@dataclass(frozen=True, slots=True)
class Member:
    """One member of an object, or one parameter; ``kind`` is its type in short, ``schema`` the one it is made of."""

    name: str
    kind: str
    schema: str = ""
    where: str = ""
    description: str = ""
    required: bool = False


@dataclass(frozen=True, slots=True)
class Entry:
    """One operation as the page shows it; ``takes`` and ``gives`` name schemas."""

    name: str
    method: str
    path: str
    summary: str
    description: str
    permission: str
    parameters: tuple[Member, ...]
    takes: str
    gives: str
    statuses: tuple[str, ...]
    example: str


@dataclass(frozen=True, slots=True)
class Group:
    """The operations on one resource."""

    name: str
    description: str
    entries: tuple[Entry, ...]

    @property
    def anchor(self) -> str:
        """Where it stands on the page."""
        return self.name.lower().replace(" ", "-")


@dataclass(frozen=True, slots=True)
class Schema:
    """One schema as the page shows it: an object's members, or the words there are to choose from."""

    name: str
    description: str
    members: tuple[Member, ...]
    words: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Known:
    """The document as it is sent, and as it is shown."""

    body: bytes
    tag: str
    paragraphs: tuple[str, ...]
    groups: tuple[Group, ...]
    schemas: tuple[Schema, ...]

    @classmethod
    def of(cls, said: Mapping[str, Any]) -> "Known":
        """What a document says."""
        text = json.dumps(said, ensure_ascii=False, separators=(",", ":"))
        return cls(
            body=text.encode(),
            tag=conditions.tag_of_text(text),
            paragraphs=tuple(said["info"]["description"].split("\n\n")),
            groups=tuple(_groups(said)),
            schemas=tuple(_schema(name, one) for name, one in said["components"]["schemas"].items()),
        )


def _groups(said: Mapping[str, Any]) -> Iterator[Group]:
    for tag in said["tags"]:
        entries = tuple(
            _entry(method, path, item[method], said)
            for path, item in said["paths"].items()
            for method in _METHODS
            if method in item and tag["name"] in item[method]["tags"]
        )
        yield Group(tag["name"], tag["description"], entries)


def _entry(method: str, path: str, operation: Mapping[str, Any], said: Mapping[str, Any]) -> Entry:
    takes = _content(operation.get("requestBody", {}))
    good = next(one for status, one in operation["responses"].items() if status.startswith("2"))
    return Entry(
        name=operation["operationId"],
        method=method.upper(),
        path=path,
        summary=operation["summary"],
        description=operation.get("description", ""),
        permission=operation["x-permission"],
        parameters=tuple(_parameter(one, said) for one in operation["parameters"]),
        takes=takes,
        gives=_content(good),
        statuses=tuple(operation["responses"]),
        example=_example(method.upper(), path, takes, said),
    )


def _parameter(one: Mapping[str, Any], said: Mapping[str, Any]) -> Member:
    if "$ref" in one:
        one = said["components"]["parameters"][_last(one["$ref"])]
    return Member(
        name=one["name"],
        kind=_kind(one["schema"]),
        where=one["in"],
        description=one.get("description", ""),
        required=one.get("required", False),
    )


def _schema(name: str, schema: Mapping[str, Any]) -> Schema:
    required = schema.get("required", [])
    members = tuple(
        Member(
            name=member,
            kind=_kind(one),
            schema=_of_schema(one),
            description=one.get("description", ""),
            required=member in required,
        )
        for member, one in schema.get("properties", {}).items()
    )
    return Schema(name, schema.get("description", ""), members, tuple(map(str, schema.get("enum", ()))))


def _kind(schema: Mapping[str, Any]) -> str:
    """A type in short: string, string[], integer | null, "link" | "one_time_password"."""
    if "$ref" in schema:
        return _last(schema["$ref"])
    if "anyOf" in schema:
        return " | ".join(_kind(one) for one in schema["anyOf"])
    if "enum" in schema:
        return " | ".join(json.dumps(one) for one in schema["enum"])
    if "const" in schema:
        return json.dumps(schema["const"])
    kind = schema.get("type", "any")
    if kind == "array":
        return f"{_kind(schema.get('items', {}))}[]"
    if isinstance(kind, list):
        return " | ".join(kind)
    return f"{kind} ({schema['format']})" if "format" in schema else str(kind)


def _of_schema(schema: Mapping[str, Any]) -> str:
    """The name of the schema to look at for a member; empty for plain types."""
    for one in (schema, schema.get("items", {}), *schema.get("anyOf", ())):
        if "$ref" in one:
            return _last(one["$ref"])
    return ""


def _content(said: Mapping[str, Any]) -> str:
    reference = said.get("content", {}).get(JSON, {}).get("schema", {}).get("$ref", "")
    return _last(reference)


def marked(text: str) -> Markup:
    """The text with what stands between backquotes as code."""
    parts = text.split("`")
    code = Markup("<code>{}</code>")
    return Markup("").join(code.format(part) if place % 2 else part for place, part in enumerate(parts))


def _last(reference: str) -> str:
    return reference.rpartition("/")[2]


def _example(method: str, path: str, takes: str, said: Mapping[str, Any]) -> str:
    """The request as one types it."""
    address = f"{said['servers'][0]['url']}{path.replace('{', '$').replace('}', '')}"
    lines = [f'curl "{address}"' if method == "GET" else f'curl -X {method} "{address}"']
    lines.append('  -H "Authorization: Bearer $TOKEN"')
    if takes:
        schema = said["components"]["schemas"][takes]
        shown = {name: _sample(schema["properties"][name], said) for name in schema.get("required", ())}
        lines += ['  -H "Content-Type: application/json"', f"  -d '{json.dumps(shown, ensure_ascii=False)}'"]
    return " \\\n".join(lines)


def _sample(schema: Mapping[str, Any], said: Mapping[str, Any]) -> Any:
    if "$ref" in schema:
        schema = said["components"]["schemas"][_last(schema["$ref"])]
    if "enum" in schema:
        return schema["enum"][0]
    if schema.get("type") == "array":
        return [_sample(schema["items"], said)]
    return "…" if schema.get("type") == "string" else None


def configure(config: Configurator) -> None:
    """GET /openapi.json and the page at /."""
    base_url = config.registry.identity.settings.base_url

    @cache
    def known() -> Known:
        return Known.of(document(base_url))

    def show_document(request: Request) -> Response:
        present = known()
        seen = request.environ.get("HTTP_IF_NONE_MATCH")
        fresh = seen is not None and conditions.is_known(seen, present.tag)
        response = Response(b"" if fresh else present.body, status=304 if fresh else 200, charset=None)
        response.content_type = None if fresh else JSON
        response.headers.update({"ETag": present.tag, "Cache-Control": f"public, max-age={_MAX_AGE}"})
        return response

    # One for each language: it is the same for everybody, and takes its time to draw.
    drawn: dict[str, bytes] = {}

    def show_page(request: Request) -> Response:
        language = language_of(request)
        if language not in drawn:
            variables = {"known": known(), "base": PREFIX, "marked": marked}
            page = request.registry.pages.draw(request, "management/browse.html", variables, language=language)
            drawn[language] = page.body
        return Response(drawn[language], content_type="text/html", charset="utf-8")

    for name, path, view in (("openapi", "/openapi.json", show_document), ("browse", "/", show_page)):
        config.add_route(ROUTE + name, PREFIX + path, host="base", request_method="GET")
        config.add_view(view, route_name=ROUTE + name, permission=NO_PERMISSION_REQUIRED)
