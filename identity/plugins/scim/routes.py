"""Routes: one base URL per organization, as identity providers want one URL and one token per tenant.

A bearer token for the service itself is required everywhere. Organizations in which the token's user has no role answer
404, whether they exist or not. Each operation requires its permission; then the services decide as for the management
API. The models of SCIM are imported at the first request: few processes need them.
"""

from pyramid.config import Configurator
from pyramid.request import Request
from pyramid.response import Response

from identity.domain.records import RecordNamespace
from identity.domain.users import Subject
from identity.http.route_contexts import RouteContext, caller_context, organization_context
from identity.http.security_policy import ANY_MANAGER_PERMISSION
from identity.plugins.scim.errors import ScimRefusal, build_error
from identity.plugins.scim.kinds import USER_KIND
from identity.plugins.scim.provisioning_page import ProvisioningPage
from identity.plugins.scim.urls import console_path

ROUTE, UNKNOWN_ROUTE = "scim", "scim.unknown"


def add_scim_routes(config: Configurator, namespace: RecordNamespace, *, verifies_emails: bool) -> None:
    def view(context: RouteContext, request: Request) -> Response:
        from identity.plugins.scim.collection import ProvisioningCall
        from identity.plugins.scim.views import respond_to_call

        return respond_to_call(ProvisioningCall(request, context.entity, namespace, verifies_emails))

    def export(request: Request, subject: Subject) -> object:
        records = request.services.record_service(namespace).list_by_owner(USER_KIND, user_id=subject.user.id)
        return [record.value for record in records]

    for name, path, factory, handler in (
        (ROUTE, "/scim/v2/{organization}/*path", organization_context, view),
        (UNKNOWN_ROUTE, "/scim/v2/*path", caller_context, _refuse_unknown),
    ):
        config.add_error_format(name, build_error)
        config.add_route(name, path, host="base", authenticate="bearer", factory=factory)
        config.add_view(handler, route_name=name, permission=ANY_MANAGER_PERMISSION)
    config.add_account_data("scim", export)
    config.add_page(
        "console.organizations.organization.scim",
        console_path("{organization}") + "/scim",
        ProvisioningPage,
        permission="organization_manager.read",
        authenticate="session",
        factory=organization_context,
    )


def _refuse_unknown(context: RouteContext, request: Request) -> Response:
    raise ScimRefusal(404, "", "There is nothing at this address. The base URL ends in the organization's id.")
