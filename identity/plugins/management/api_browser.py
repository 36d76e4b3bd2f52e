"""The OpenAPI document and a page to browse it. Both are public: neither contains secrets."""

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache

from markupsafe import Markup
from pyramid.config import Configurator
from pyramid.request import Request
from pyramid.response import Response
from pyramid.security import NO_PERMISSION_REQUIRED

from identity.api.plugins import cached_property
from identity.http.language_negotiation import RequestLanguage
from identity.plugins.management import conditional_requests
from identity.plugins.management.json_schemas import JsonObject
from identity.plugins.management.openapi import build_document
from identity.plugins.management.operation import JSON_MEDIA_TYPE, OperationGroup
from identity.plugins.management.operation_views import PATH_PREFIX, ROUTE_NAME_PREFIX

#: The page on the login host that tries an operation is below it.
TRY_PATH = "/console/api"

_METHODS = ("get", "post", "patch", "delete")
_MAX_AGE = 300


@dataclass(frozen=True, slots=True)
class SchemaRow:
    """One member of an object, or one parameter; ``kind`` is its type in short, ``schema`` the schema it refers to."""

    name: str
    kind: str
    schema: str
    description: str
    required: bool


class OpenApiReader:
    """Reads the OpenAPI document for pages. Building it takes long, so that happens on first use."""

    def __init__(self, base_url: str, groups: Sequence[OperationGroup]) -> None:
        self._base_url, self._groups = base_url, groups

    @cached_property
    def document(self) -> JsonObject:
        return build_document(self._base_url, self._groups)

    @property
    def schemas(self) -> JsonObject:
        found: JsonObject = self.document["components"]["schemas"]
        return found

    def operations_by_tag(self, tag: str) -> Iterator[tuple[str, str, JsonObject]]:
        """Method, path and operation of each operation with this tag."""
        for path, item in self.document["paths"].items():
            for method in _METHODS:
                if method in item and tag in item[method]["tags"]:
                    yield method.upper(), path, item[method]

    def parameters(self, operation: JsonObject) -> Sequence[SchemaRow]:
        """Parameters in path, query and headers."""
        known = self.document["components"]["parameters"]
        found = [known[_reference_name(item["$ref"])] if "$ref" in item else item for item in operation["parameters"]]
        return [_build_row(item["name"], item["schema"], item.get("required", False), item) for item in found]

    def members(self, schema: JsonObject) -> Sequence[SchemaRow]:
        required = schema.get("required", ())
        return [_build_row(name, item, name in required, item) for name, item in schema.get("properties", {}).items()]

    def request_schema(self, operation: JsonObject) -> str:
        """The name of the body's schema; empty without a body."""
        return _json_schema(operation.get("requestBody", {}))

    def response_schema(self, operation: JsonObject) -> str:
        """The name of the success response's schema; empty without a body."""
        return _json_schema(next(item for status, item in operation["responses"].items() if status.startswith("2")))

    def curl_example(self, method: str, path: str, operation: JsonObject) -> str:
        address = f"{self.document['servers'][0]['url']}{path.replace('{', '$').replace('}', '')}"
        lines = [f'curl "{address}"' if method == "GET" else f'curl -X {method} "{address}"']
        lines.append('  -H "Authorization: Bearer $TOKEN"')
        if self.request_schema(operation):
            sample = json.dumps(self.sample_body(operation), ensure_ascii=False)
            lines += ['  -H "Content-Type: application/json"', f"  -d '{sample}'"]
        return " \\\n".join(lines)

    def sample_body(self, operation: JsonObject) -> JsonObject:
        """The required members of the operation's body, with placeholders as values."""
        schema = self.schemas[self.request_schema(operation)]
        return {name: self._sample_value(schema["properties"][name]) for name in schema.get("required", ())}

    def _sample_value(self, schema: JsonObject) -> object:
        if "$ref" in schema:
            schema = self.schemas[_reference_name(schema["$ref"])]
        if "enum" in schema:
            return schema["enum"][0]
        if schema.get("type") == "array":
            return [self._sample_value(schema["items"])]
        return "…" if schema.get("type") == "string" else None


def _build_row(name: str, schema: JsonObject, required: bool, source: JsonObject) -> SchemaRow:
    return SchemaRow(name, _type_label(schema), _referenced_schema(schema), source.get("description", ""), required)


def _type_label(schema: JsonObject) -> str:
    """A type in short: string, string[], integer | null, "link" | "one_time_password"."""
    if "$ref" in schema:
        return _reference_name(schema["$ref"])
    if "anyOf" in schema:
        return " | ".join(_type_label(item) for item in schema["anyOf"])
    if "enum" in schema:
        return " | ".join(json.dumps(item) for item in schema["enum"])
    if "const" in schema:
        return json.dumps(schema["const"])
    kind = schema.get("type", "any")
    if kind == "array":
        return f"{_type_label(schema.get('items', {}))}[]"
    if isinstance(kind, list):
        return " | ".join(kind)
    return f"{kind} ({schema['format']})" if "format" in schema else str(kind)


def _referenced_schema(schema: JsonObject) -> str:
    """The name of the schema that a member refers to; empty for plain types."""
    for item in (schema, schema.get("items", {}), *schema.get("anyOf", ())):
        if "$ref" in item:
            return _reference_name(item["$ref"])
    return ""


def _json_schema(message: JsonObject) -> str:
    reference = message.get("content", {}).get(JSON_MEDIA_TYPE, {}).get("schema", {}).get("$ref", "")
    return _reference_name(reference)


def format_code_spans(text: str) -> Markup:
    """The text with backquoted parts in ``code`` elements."""
    parts = text.split("`")
    code = Markup("<code>{}</code>")
    return Markup("").join(code.format(part) if number % 2 else part for number, part in enumerate(parts))


def _reference_name(reference: str) -> str:
    return reference.rpartition("/")[2]


def add_browser_routes(config: Configurator, reader: OpenApiReader) -> None:
    settings = config.registry.application.settings

    @cache
    def encoded_document() -> tuple[bytes, str]:
        text = json.dumps(reader.document, ensure_ascii=False, separators=(",", ":"))
        return text.encode(), conditional_requests.text_etag(text)

    def show_document(request: Request) -> Response:
        body, tag = encoded_document()
        if_none_match = request.environ.get("HTTP_IF_NONE_MATCH")
        fresh = if_none_match is not None and conditional_requests.matches_if_none_match(if_none_match, tag)
        response = Response(b"" if fresh else body, status=304 if fresh else 200, charset=None)
        response.content_type = None if fresh else JSON_MEDIA_TYPE
        response.headers.update({"ETag": tag, "Cache-Control": f"public, max-age={_MAX_AGE}"})
        return response

    # By language: rendering is slow, and the page is the same for everyone.
    drawn: dict[str, bytes] = {}

    def show_page(request: Request) -> Response:
        language = RequestLanguage.negotiate(request)
        if language not in drawn:
            variables = {
                "guide": reader,
                "base": PATH_PREFIX,
                "marked": format_code_spans,
                "try_path": settings.login_url + TRY_PATH,
            }
            page = request.registry.pages.render(request, "management/api_browser.html", variables, language=language)
            drawn[language] = page.body
        return Response(drawn[language], content_type="text/html", charset="utf-8")

    for name, path, view in (("openapi", "/openapi.json", show_document), ("browse", "/", show_page)):
        config.add_route(ROUTE_NAME_PREFIX + name, PATH_PREFIX + path, host="base", request_method="GET")
        config.add_view(view, route_name=ROUTE_NAME_PREFIX + name, permission=NO_PERMISSION_REQUIRED)
