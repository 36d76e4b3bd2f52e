"""Schemas: what goes in and out, as JSON Schema made from the models that decode and show it."""

from functools import cache
from typing import Any

from pydantic import BaseModel
from pydantic.json_schema import GenerateJsonSchema, JsonSchemaMode, JsonSchemaValue, models_json_schema

from identity.domain.validators import MAX_TOKEN_LIFETIME

_COMPONENT = "#/components/schemas/{model}"


class _SchemaGenerator(GenerateJsonSchema):
    """Lifetimes are whole seconds; sets are lists in which a value may stand twice."""

    def timedelta_schema(self, schema: Any) -> JsonSchemaValue:
        return {"type": "integer", "minimum": 1, "maximum": int(MAX_TOKEN_LIFETIME.total_seconds())}

    def frozenset_schema(self, schema: Any) -> JsonSchemaValue:
        return {"type": "array", "items": self.generate_inner(schema["items_schema"])}

    def field_title_should_be_set(self, schema: Any) -> bool:
        return False


@cache
def input_schema(model: type[BaseModel]) -> dict[str, Any]:
    """The schema of what is sent, with its definitions."""
    return model.model_json_schema(schema_generator=_SchemaGenerator, mode="validation")


def component_schemas(request_models: list[type[BaseModel]], response_models: list[type[BaseModel]]) -> dict[str, Any]:
    """The schemas of all models by name, as they stand in a document."""
    modes: list[tuple[type[BaseModel], JsonSchemaMode]] = [
        *((model, "validation") for model in request_models),
        *((model, "serialization") for model in response_models),
    ]
    _, document = models_json_schema(modes, ref_template=_COMPONENT, schema_generator=_SchemaGenerator)
    schemas: dict[str, Any] = document["$defs"]
    return schemas


def schema_reference(model: type[BaseModel]) -> dict[str, str]:
    """Where a model's schema stands in a document."""
    return {"$ref": _COMPONENT.format(model=model.__name__)}
