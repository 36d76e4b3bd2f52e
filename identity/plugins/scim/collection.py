"""What users and groups share: one collection of resources of one organization, for one request."""

import hashlib
import json
from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar

from pyramid.request import Request
from scim2_models import Meta, PayloadTooLargeException, Resource, UniquenessException
from scim2_models.path import AttrPath, CompareOperator, Comparison, FilterNode, LogicalExpr, LogicalOperator, ValuePath

from identity.domain.organizations import Organization
from identity.domain.permissions import Resource as PermissionResource
from identity.domain.records import Record, RecordNamespace
from identity.http.error_views import MalformedRequest
from identity.http.strict_json import validate_strings
from identity.plugins.scim.schemas import RESOURCE_MODELS, endpoint_name
from identity.plugins.scim.urls import organization_url
from identity.services.access_control import Principal
from identity.services.container import Services
from identity.services.records import MAX_VALUE_BYTES, RecordService


@dataclass(frozen=True)
class ProvisioningCall:
    """A request, for one organization. ``request`` has the services, also after a commit."""

    request: Request
    organization: Organization
    namespace: RecordNamespace
    verifies_emails: bool

    @property
    def services(self) -> Services:
        services: Services = self.request.services
        return services

    @property
    def principal(self) -> Principal:
        principal: Principal = self.request.identity
        return principal

    @property
    def records(self) -> RecordService:
        return self.services.record_service(self.namespace)

    @property
    def base_url(self) -> str:
        return organization_url(self.request.registry.application.settings.base_url, self.organization.id)

    def require(self, permission: str) -> None:
        """Raise Denied unless the caller has the permission in the organization."""
        resource = PermissionResource.of_organization(self.organization.id)
        self.services.access_control.require(self.principal, permission, resource)


class ResourceCollection(ABC):
    """The resources of one type. Permissions of the route are checked before; the services check those of the changed
    user or group."""

    resource_type: ClassVar[str]
    read_permission: ClassVar[str]
    write_permission: ClassVar[str]
    delete_permission: ClassVar[str]

    def __init__(self, call: ProvisioningCall) -> None:
        self.call = call
        self.organization_id = call.organization.id

    @property
    def model(self) -> type[Resource[Any]]:
        return RESOURCE_MODELS[self.resource_type]

    @abstractmethod
    def get(self, id: str) -> Any:
        """The resource. Raises NotFound, also for one of another organization."""

    @abstractmethod
    def create(self, resource: Any) -> Any:
        """Store a new resource and return it. Raises DomainError, SCIMException."""

    @abstractmethod
    def save(self, id: str, before: Any, after: Any, *, is_replaced: bool) -> Any:
        """Store the changed resource and return it. Raises DomainError, SCIMException."""

    @abstractmethod
    def delete(self, id: str) -> None:
        """Raises NotFound, Denied, Conflict."""

    @abstractmethod
    def iterate(self) -> Iterator[Any]:
        """All entities, in a stable order."""

    @abstractmethod
    def load(self, entities: list[Any]) -> list[Any]:
        """The resources of these entities, in their order."""

    @abstractmethod
    def find_indexed(self, attribute: str, value: str) -> list[Any] | None:
        """The entities whose attribute can have this value, found by an index; None without one for the attribute."""

    def find_candidates(self, node: FilterNode) -> list[Any] | None:
        """Entities that include all that match the filter, found by indexes; None if all have to be looked at."""
        if isinstance(node, LogicalExpr):
            found = [self.find_candidates(term) for term in node.terms]
            if node.op is LogicalOperator.and_:
                return next((entities for entities in found if entities is not None), None)
            if any(entities is None for entities in found):
                return None
            unique = {entity.id: entity for entities in found for entity in entities or ()}
            return [unique[id] for id in sorted(unique)]
        if isinstance(node, ValuePath):
            return self._find_by_value(node.attr_path, node.val_filter)
        if isinstance(node, Comparison) and node.op is CompareOperator.eq and isinstance(node.value, str):
            return self._find_by_index(node.attr_path, node.value)
        return None

    def _find_by_index(self, attribute: AttrPath, value: str) -> list[Any] | None:
        """Nothing stored has a value that an escape in a filter made, such as NUL or a lone surrogate."""
        try:
            validate_strings(value)
        except (MalformedRequest, UnicodeError):
            return []
        return self.find_indexed(_attribute_name(attribute), value)

    def _find_by_value(self, attribute: AttrPath, node: FilterNode) -> list[Any] | None:
        is_all = isinstance(node, LogicalExpr) and node.op is LogicalOperator.and_
        for term in node.terms if is_all and isinstance(node, LogicalExpr) else (node,):
            if not isinstance(term, Comparison) or term.attr_path.attr.lower() != "value":
                continue
            if term.op is CompareOperator.eq and isinstance(term.value, str):
                return self._find_by_index(attribute, term.value)
        return None

    # --- for subclasses ----------------------------------------------------------------------------------------------

    def location(self, id: str, resource_type: str | None = None) -> str:
        return f"{self.call.base_url}/{endpoint_name(resource_type or self.resource_type)}/{id}"

    def meta(self, entity: Any, version: str | None) -> Meta:
        return Meta(
            resource_type=self.resource_type,
            created=entity.created_at,
            last_modified=entity.changed_at,
            location=self.location(entity.id),
            version=version,
        )

    def store_value(self, kind: str, id: str, value: dict[str, Any], *, user_id: str | None = None) -> None:
        """Add or replace the record of this resource. Raises PayloadTooLargeException."""
        records, record = self.call.records, self.call.records.find(kind, id)
        refuse_large(value)
        if record is None:
            records.add(kind, id, value, user_id=user_id)
        elif record.value != value:
            records.replace(record, value)

    def move_index(
        self, kind: str, before: str | None, after: str | None, id: str, *, user_id: str | None = None
    ) -> Record | None:
        """Let the key find this resource instead of a former key; returns the record of another resource that has
        the key. Keys are those of the organization and the resource type."""
        records, value = self.call.records, {"id": id}
        if before is not None and before != after:
            records.delete(kind, self.index_key(before))
        holder = None if after is None else records.add(kind, self.index_key(after), value, user_id=user_id)
        return None if holder is None or holder.value == value else holder

    def find_index(self, kind: str, key: str) -> str | None:
        """The id of the resource with this key."""
        record = self.call.records.find(kind, self.index_key(key))
        return None if record is None else str(record.value["id"])

    def index_key(self, key: str) -> str:
        return f"{self.organization_id}\n{self.resource_type}\n{key}"


def refuse_large(value: dict[str, Any]) -> None:
    """Raise PayloadTooLargeException for more attributes than are stored."""
    if len(json.dumps(value)) > MAX_VALUE_BYTES:
        raise PayloadTooLargeException(detail="The resource has more attributes than the service stores.")


def uniqueness_error(attribute: str, value: str) -> UniquenessException:
    return UniquenessException(
        attribute=attribute, value=value, detail=f"Another resource of the organization has this {attribute}."
    )


def content_version(resource: Resource[Any]) -> str:
    """The entity tag of a resource that has no version of its own."""
    return f'W/"{hashlib.sha256(resource.model_dump_json().encode()).hexdigest()[:24]}"'


def _attribute_name(path: AttrPath) -> str:
    """In lower case, without a schema; a multi-valued attribute stands for its values."""
    sub_attribute = "" if path.sub_attr is None or path.sub_attr.lower() == "value" else f".{path.sub_attr}"
    return f"{path.attr}{sub_attribute}".lower()
