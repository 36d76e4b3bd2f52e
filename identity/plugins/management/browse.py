"""The document of the API and a page to browse it, both for whoever asks: neither holds anything secret."""

import json
from collections.abc import Iterator, Mapping, Sequence
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
class Row:
    """One member of an object, or one parameter; ``kind`` is its type in short, ``schema`` the one it is made of."""

    name: str
    kind: str
    schema: str
    description: str
    required: bool


class Guide:
    """The document, as the page asks it."""

    def __init__(self, said: Mapping[str, Any]) -> None:
        self.said = said
        self.schemas: Mapping[str, Any] = said["components"]["schemas"]

    def entries(self, tag: str) -> Iterator[tuple[str, str, Mapping[str, Any]]]:
        """Method, path and operation of all that have this tag."""
        for path, item in self.said["paths"].items():
            for method in _METHODS:
                if method in item and tag in item[method]["tags"]:
                    yield method.upper(), path, item[method]

    def parameters(self, operation: Mapping[str, Any]) -> Sequence[Row]:
        """What the address of an operation and its headers take."""
        known = self.said["components"]["parameters"]
        given = [known[_last(one["$ref"])] if "$ref" in one else one for one in operation["parameters"]]
        return [_row(one["name"], one["schema"], one.get("required", False), one) for one in given]

    def members(self, schema: Mapping[str, Any]) -> Sequence[Row]:
        """What an object consists of."""
        required = schema.get("required", ())
        return [_row(name, one, name in required, one) for name, one in schema.get("properties", {}).items()]

    def takes(self, operation: Mapping[str, Any]) -> str:
        """The schema of what is sent; empty for none."""
        return _content(operation.get("requestBody", {}))

    def gives(self, operation: Mapping[str, Any]) -> str:
        """The schema of a good answer; empty for none."""
        return _content(next(one for status, one in operation["responses"].items() if status.startswith("2")))

    def example(self, method: str, path: str, operation: Mapping[str, Any]) -> str:
        """The request as one types it."""
        address = f"{self.said['servers'][0]['url']}{path.replace('{', '$').replace('}', '')}"
        lines = [f'curl "{address}"' if method == "GET" else f'curl -X {method} "{address}"']
        lines.append('  -H "Authorization: Bearer $TOKEN"')
        takes = self.takes(operation)
        if takes:
            schema = self.schemas[takes]
            shown = {name: self._sample(schema["properties"][name]) for name in schema.get("required", ())}
            lines += ['  -H "Content-Type: application/json"', f"  -d '{json.dumps(shown, ensure_ascii=False)}'"]
        return " \\\n".join(lines)

    def _sample(self, schema: Mapping[str, Any]) -> Any:
        if "$ref" in schema:
            schema = self.schemas[_last(schema["$ref"])]
        if "enum" in schema:
            return schema["enum"][0]
        if schema.get("type") == "array":
            return [self._sample(schema["items"])]
        return "…" if schema.get("type") == "string" else None


def _row(name: str, schema: Mapping[str, Any], required: bool, said: Mapping[str, Any]) -> Row:
    return Row(name, _kind(schema), _of_schema(schema), said.get("description", ""), required)


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


def configure(config: Configurator) -> None:
    """GET /openapi.json and the page at /."""
    base_url = config.registry.identity.settings.base_url

    @cache
    def known() -> tuple[Guide, bytes, str]:
        said = document(base_url)
        text = json.dumps(said, ensure_ascii=False, separators=(",", ":"))
        return Guide(said), text.encode(), conditions.tag_of_text(text)

    def show_document(request: Request) -> Response:
        _, body, tag = known()
        seen = request.environ.get("HTTP_IF_NONE_MATCH")
        fresh = seen is not None and conditions.is_known(seen, tag)
        response = Response(b"" if fresh else body, status=304 if fresh else 200, charset=None)
        response.content_type = None if fresh else JSON
        response.headers.update({"ETag": tag, "Cache-Control": f"public, max-age={_MAX_AGE}"})
        return response

    # One for each language: it is the same for everybody, and takes its time to draw.
    drawn: dict[str, bytes] = {}

    def show_page(request: Request) -> Response:
        language = language_of(request)
        if language not in drawn:
            variables = {"guide": known()[0], "base": PREFIX, "marked": marked}
            page = request.registry.pages.draw(request, "management/browse.html", variables, language=language)
            drawn[language] = page.body
        return Response(drawn[language], content_type="text/html", charset="utf-8")

    for name, path, view in (("openapi", "/openapi.json", show_document), ("browse", "/", show_page)):
        config.add_route(ROUTE + name, PREFIX + path, host="base", request_method="GET")
        config.add_view(view, route_name=ROUTE + name, permission=NO_PERMISSION_REQUIRED)
