"""The resources of SCIM as models, and what the service says about itself (RFC 7643 §5 to §7)."""

from typing import Annotated, Any, TypeVar

from pydantic import Field
from scim2_models import (
    URN,
    Address,
    AuthenticationScheme,
    Bulk,
    CaseExact,
    ChangePassword,
    ComplexAttribute,
    ETag,
    Extension,
    External,
    Filter,
    GroupMembership,
    Meta,
    Mutability,
    Name,
    Pagination,
    Patch,
    PhoneNumber,
    Reference,
    Required,
    Resource,
    ResourceType,
    Returned,
    Schema,
    ScimPolicy,
    ServiceProviderConfig,
    Sort,
    Uniqueness,
)

#: Largest page of a list.
MAX_RESULTS = 200
MAX_BULK_OPERATIONS = 100
#: As for every request to an API.
MAX_PAYLOAD_SIZE = 64 * 1024
#: Longest filter and longest path of a PATCH operation.
MAX_FILTER_LENGTH = 1000

#: What Microsoft Entra and Okta send besides the specification: unknown attributes, a ``remove`` with a value, and a
#: path such as ``emails[type eq "work"].value`` for an entry that does not exist yet.
POLICY = ScimPolicy(
    unknown=ScimPolicy.Unknown.ignore,
    remove_value_as_filter=ScimPolicy.RemoveValue.apply,
    unmatched_path_filter=ScimPolicy.UnmatchedPathFilter.create,
)

ExtensionT = TypeVar("ExtensionT", bound=Extension)


class ScimEmail(ComplexAttribute):
    """An email address. The account has the primary one."""

    value: str | None = None
    display: str | None = None
    type: str | None = Field(None, examples=["work", "home", "other"])
    primary: bool | None = None


class ScimSupervisor(ComplexAttribute):
    """The user's manager, in the sense of an organization chart."""

    value: Annotated[str | None, CaseExact.true] = None
    ref: Reference[External] | None = Field(None, serialization_alias="$ref", validation_alias="$ref")
    display_name: Annotated[str | None, Mutability.read_only] = None


class ScimEnterpriseUser(Extension):
    """Enterprise User"""

    __schema__ = URN("urn:ietf:params:scim:schemas:extension:enterprise:2.0:User")

    employee_number: str | None = None
    cost_center: str | None = None
    organization: str | None = None
    division: str | None = None
    department: str | None = None
    manager: ScimSupervisor | None = None


class ScimUser(Resource[ExtensionT]):
    """User Account"""

    __schema__ = URN("urn:ietf:params:scim:schemas:core:2.0:User")

    user_name: Annotated[str | None, Uniqueness.server, Required.true] = None
    name: Name | None = None
    display_name: str | None = None
    nick_name: str | None = None
    profile_url: Reference[External] | None = None
    title: str | None = None
    user_type: str | None = None
    preferred_language: str | None = None
    locale: str | None = None
    timezone: str | None = None
    active: bool | None = None
    emails: list[ScimEmail] | None = None
    phone_numbers: list[PhoneNumber] | None = None
    addresses: list[Address] | None = None
    groups: Annotated[list[GroupMembership] | None, Mutability.read_only, Returned.request] = None


class ScimGroupMember(ComplexAttribute):
    """A member of a group."""

    value: Annotated[str | None, Mutability.immutable, CaseExact.true] = None
    ref: Annotated[Reference["User"] | None, Mutability.immutable] = Field(  # type: ignore[name-defined]  # noqa: F821
        None, serialization_alias="$ref", validation_alias="$ref"
    )
    type: Annotated[str | None, Mutability.immutable] = Field(None, examples=["User"])


class ScimGroup(Resource[Any]):
    """Group"""

    __schema__ = URN("urn:ietf:params:scim:schemas:core:2.0:Group")

    display_name: Annotated[str | None, Uniqueness.server, Required.true] = None
    members: list[ScimGroupMember] | None = None


UserResource = ScimUser[ScimEnterpriseUser]
GroupResource = ScimGroup

#: Name, endpoint and model of each resource type.
RESOURCE_MODELS: dict[str, type[Resource[Any]]] = {"User": UserResource, "Group": GroupResource}


def endpoint_name(resource_type: str) -> str:
    """The path segment of a resource type."""
    return f"{resource_type}s"


def resource_types(base_url: str) -> list[Any]:
    found = []
    for name, model in RESOURCE_MODELS.items():
        described = ResourceType.from_resource(model)
        described.description = (model.__doc__ or name).partition("\n")[0]
        described.meta = Meta(resource_type="ResourceType", location=f"{base_url}/ResourceTypes/{name}")
        found.append(described)
    return found


def schemas(base_url: str) -> list[Any]:
    # The classes have names of their own.
    models = {"User": UserResource, "EnterpriseUser": ScimEnterpriseUser, "Group": GroupResource}
    found = []
    for name, model in models.items():
        schema: Schema = model.to_schema()  # type: ignore[attr-defined]
        schema.name = name
        for attribute in schema.attributes or ():
            # An account is one or the other. A new user without it is active.
            attribute.required = Required(attribute.required or attribute.name == "active")
        schema.meta = Meta(resource_type="Schema", location=f"{base_url}/Schemas/{schema.id}")
        found.append(schema)
    return found


def service_provider_config(base_url: str, documentation_url: str) -> Any:
    return ServiceProviderConfig(
        documentation_uri=Reference(documentation_url),
        patch=Patch(supported=True),
        bulk=Bulk(supported=True, max_operations=MAX_BULK_OPERATIONS, max_payload_size=MAX_PAYLOAD_SIZE),
        filter=Filter(supported=True, max_results=MAX_RESULTS),
        change_password=ChangePassword(supported=False),
        sort=Sort(supported=True),
        etag=ETag(supported=True),
        pagination=Pagination(
            cursor=False,
            index=True,
            default_pagination_method=Pagination.DefaultPaginationMethod.index,
            default_page_size=100,
            max_page_size=MAX_RESULTS,
        ),
        authentication_schemes=[
            AuthenticationScheme(
                type=AuthenticationScheme.Type.oauthbearertoken,
                name="Bearer token",
                description="An access token or personal access token of a service user, for the service itself.",
                spec_uri=Reference("https://www.rfc-editor.org/info/rfc6750"),
                primary=True,
            )
        ],
        meta=Meta(resource_type="ServiceProviderConfig", location=f"{base_url}/ServiceProviderConfig"),
    )
