"""JSON Schemas of request and response bodies, generated from the models that decode and encode them."""

from collections.abc import Mapping
from functools import cache
from typing import Any

from pydantic import BaseModel
from pydantic.json_schema import GenerateJsonSchema, JsonSchemaMode, JsonSchemaValue, models_json_schema

from identity.domain.validators import MAX_TOKEN_LIFETIME

#: A JSON object, such as a JSON Schema.
JsonObject = dict[str, Any]

_COMPONENT = "#/components/schemas/{model}"

#: Published schema names that differ from the class names. Generated clients depend on them.
_COMPONENT_NAMES: Mapping[str, str] = {
    "AddGrantToProjectRequest": "GrantOfProject",
    "AddGrantToUserRequest": "GrantToUser",
    "AddServiceUserKeyRequest": "NewKey",
    "ApplicationSpec": "DescribedApplication",
    "AttributeMappingSpec": "DescribedAttributeMapping",
    "AttributeSpec": "DescribedAttribute",
    "Caller": "Me",
    "CallerManagerRoles": "HeldRoles",
    "CallerOrganization": "OwnOrganization",
    "ClaimsCarrier": "Carrier",
    "ConnectedApplication": "Connection",
    "CreateLegalHold": "PlaceLegalHold",
    "DomainProof": "Proof",
    "EmptyCommand": "Nothing",
    "Enrolment": "Factor",
    "ExpiringCredential": "Expiring",
    "ExpiringCredentialKind": "ExpiringKind",
    "ExplainedClaim": "Claim",
    "GettingStarted": "FirstSteps",
    "GrantPreview": "Way",
    "InitialCredential": "Initial",
    "LegalHoldKind": "Held",
    "ManagerLevel": "Level",
    "ManagerRole": "Role",
    "GroupGrantSpec": "DescribedGroupGrant",
    "GroupManagerSpec": "DescribedGroupManager",
    "GroupMappingSpec": "DescribedGroupMapping",
    "GroupMemberSpec": "DescribedGroupMember",
    "DirectorySpec": "DescribedDirectory",
    "GroupSpec": "DescribedGroup",
    "ManagerSpec": "DescribedManager",
    "OAuthError": "Refused",
    "OmittedItem": "LeftOut",
    "OrganizationDomain": "Domain",
    "OrganizationExport": "ExportedOrganization",
    "OrganizationSpec": "DescribedOrganization",
    "PolicyImpact": "PolicyEffect",
    "PolicyRules": "Rules",
    "PolicySource": "Source",
    "PreviewedClaims": "Carried",
    "ProjectGrantSpec": "DescribedProjectGrant",
    "ProjectSpec": "DescribedProject",
    "RefusalSummary": "Refusal",
    "RotateSigningKeyRequest": "RotateSigningKey",
    "SecondFactorRule": "SecondFactor",
    "FederatedCredentialSpec": "DescribedFederatedCredential",
    "ServiceUserKeySpec": "DescribedKey",
    "ServiceUserSpec": "DescribedServiceUser",
    "UpstreamProviderSpec": "DescribedUpstreamProvider",
    "UserGrantSpec": "DescribedUserGrant",
    "WebhookSpec": "DescribedWebhook",
    "UserSpec": "DescribedUser",
}


class _SchemaGenerator(GenerateJsonSchema):
    """Lifetimes are in seconds; sets accept duplicates."""

    def timedelta_schema(self, schema: Any) -> JsonSchemaValue:
        return {"type": "integer", "minimum": 1, "maximum": int(MAX_TOKEN_LIFETIME.total_seconds())}

    def frozenset_schema(self, schema: Any) -> JsonSchemaValue:
        return {"type": "array", "items": self.generate_inner(schema["items_schema"])}

    def normalize_name(self, name: str) -> str:
        return super().normalize_name(_component_name(name))

    def field_title_should_be_set(self, schema: Any) -> bool:
        return False


@cache
def input_schema(model: type[BaseModel]) -> JsonObject:
    """The schema of a request body, with its definitions."""
    return model.model_json_schema(schema_generator=_SchemaGenerator, mode="validation")


def component_schemas(request_models: list[type[BaseModel]], response_models: list[type[BaseModel]]) -> JsonObject:
    """All schemas by component name."""
    modes: list[tuple[type[BaseModel], JsonSchemaMode]] = [
        *((model, "validation") for model in request_models),
        *((model, "serialization") for model in response_models),
    ]
    _, document = models_json_schema(modes, ref_template=_COMPONENT, schema_generator=_SchemaGenerator)
    schemas: JsonObject = document["$defs"]
    return {name: schema | {"title": name} for name, schema in schemas.items()}


def schema_reference(model: type[BaseModel]) -> dict[str, str]:
    return {"$ref": _COMPONENT.format(model=component_name(model))}


def component_name(model: type[BaseModel]) -> str:
    """The published schema name, which stays when the class is renamed."""
    return _component_name(model.__name__)


def _component_name(class_name: str) -> str:
    name = class_name.removesuffix("Representation")
    return _COMPONENT_NAMES.get(name, name)
