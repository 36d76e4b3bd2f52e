"""Resource indicators (RFC 8707): clients name the APIs that a token is for.

A resource adds its project and the URI, as it was sent, to the audience, and narrows the audience to the named
resources. An audience gives no right, and needs those that the audience scope of the project needs. What an
authorization request names limits all tokens that come from it.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterable
from dataclasses import replace
from typing import TYPE_CHECKING, ClassVar

from identity.provider.context import Context
from identity.provider.errors import InvalidTarget
from identity.provider.parameters import Parameters

if TYPE_CHECKING:
    from identity.provider.grant_type import Authorization

PARAMETER = "resource"
_MOST = 10


class ResourceResolver(ABC):
    """Finds the project that a resource indicator names."""

    name: ClassVar[str]

    @abstractmethod
    def find_project_id(self, resource: str, authorization: "Authorization", context: Context) -> str | None:
        """The id of the project, if the user and the client may have it in the audience of a token; else None."""


def join_resources(parameters: Parameters, context: Context) -> Parameters:
    """The parameters with repeated resources in one value, separated by spaces, if resource indicators are offered.
    URIs have no spaces, so nothing is lost, and requests are stored without repeated parameters."""
    if PARAMETER not in parameters.repeated or not context.protocol.resource_resolvers:
        return parameters
    repeated = dict(parameters.repeated)
    return Parameters({**parameters, PARAMETER: " ".join(repeated.pop(PARAMETER))}, repeated)


def requested_resources(parameters: Parameters, context: Context) -> tuple[str, ...]:
    """The resources that a request names; none without resource indicators. Raises InvalidTarget."""
    if PARAMETER not in parameters or not context.protocol.resource_resolvers:
        return ()
    found = parameters.get_space_delimited(PARAMETER)
    if len(found) > _MOST:
        raise InvalidTarget(f"name at most {_MOST} resources", reason="too many resources")
    return found


def with_requested_resources(
    authorization: "Authorization", parameters: Parameters, context: Context
) -> "Authorization":
    """The authorization of a token request, for the resources that it names. What comes from a sign-in can be narrowed
    to some of the resources of the authorization request. Raises InvalidTarget."""
    requested = requested_resources(parameters, context)
    if not requested:
        return authorization
    if authorization.family_id is not None and not set(requested) <= set(authorization.resources):
        raise InvalidTarget(
            "resource is not among those of the authorization request", reason="resource was not requested at first"
        )
    return replace(authorization, resources=requested)


def resolve_resources(authorization: "Authorization", context: Context) -> tuple[str, ...]:
    """The audience of the named resources: project and URI of each. Raises InvalidTarget with one text, whether a
    resource is unknown, ambiguous or of another organization."""
    audience: dict[str, None] = {}
    for resource in authorization.resources:
        project_id = _find_project_id(resource, authorization, context)
        allowed = authorization.allowed_audience
        if project_id is None or (allowed is not None and project_id not in allowed):
            raise InvalidTarget("resource names no API that this token can be for", reason="unknown resource")
        audience |= {project_id: None, resource: None}
    return tuple(audience)


def _find_project_id(resource: str, authorization: "Authorization", context: Context) -> str | None:
    resolvers: Iterable[ResourceResolver] = context.protocol.resource_resolvers.values()
    found = (item.find_project_id(resource, authorization, context) for item in resolvers)
    return next((project_id for project_id in found if project_id is not None), None)
