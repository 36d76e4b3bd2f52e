"""The page of the console that sets up a provisioning program: base URL, service user, role and token."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial

from pyramid.response import Response

from identity.api.plugins import cached_property
from identity.domain.errors import Conflict
from identity.domain.messages import gettext_lazy as _
from identity.domain.names import name_key
from identity.domain.organizations import Organization
from identity.domain.permissions import Resource
from identity.domain.personal_access_tokens import PersonalAccessToken
from identity.domain.users import ServiceUser
from identity.http.route_contexts import RouteContext
from identity.pages.forms import SUBMISSION_ID_FIELD, FieldValue, Form
from identity.pages.page import FormPage
from identity.pages.signed_in_page import SignedInPage
from identity.plugins.scim.urls import ROLE_NAME, console_path, organization_url
from identity.services.commands.managers import AddManager
from identity.services.commands.service_users import AddPersonalAccessToken, CreateServiceUser
from identity.storage.paging import PageRequest, iterate_rows

#: The permissions that creating a program takes; the service of managers also requires those of the role.
_CREATE = ("service_user.write", "organization_manager.write")
_READ = "service_user.read"
_NAME_FIELD = "display_name"
_DOCS_PAGE = "how-to/administrators/scim"


@dataclass(frozen=True)
class ProvisioningProgram:
    """A service user with the role, and its newest token."""

    user: ServiceUser
    token: PersonalAccessToken | None


class ProvisioningPage(SignedInPage, FormPage):
    """Shown to those who see the organization's managers and service users."""

    context: RouteContext
    template = "scim/provisioning.html"
    fields = (_NAME_FIELD,)
    home_path = "/console"
    is_creation = True
    #: The token that this request created, which is shown once.
    secret = ""

    def early_response(self) -> Response | None:
        """Raises Denied."""
        self._require(_READ)
        return super().early_response()

    def common_variables(self) -> Mapping[str, object]:
        """In the frame of the console, if it is installed."""
        frame = self.renderer.console_frame
        return super().common_variables() if frame is None else frame(self.request, self.context, "")

    def initial_values(self) -> Mapping[str, FieldValue]:
        return {_NAME_FIELD: self.translator.gettext("Provisioning")}

    def template_variables(self) -> Mapping[str, object]:
        organization, services = self._organization, self.request.services
        permitted = services.access_control.list_permissions(self.request.identity, self._resource)
        role = services.access_control.find_role(ROLE_NAME)
        docs = self.request.registry.get("documentation_path")
        return {
            "trail": [(organization.name, console_path(organization.id))],
            "base_url": organization_url(self.request.registry.application.settings.base_url, organization.id),
            "docs_path": "" if docs is None else f"{docs}/{_DOCS_PAGE}.html",
            "programs": self._programs,
            "now": services.now,
            "may_create": role is not None and permitted >= {*_CREATE, *role.permissions},
            "secret": self.secret,
        }

    def submit(self, form: Form) -> Response:
        """Create service user, role and token, and show the token. Raises DomainError."""
        services, principal, organization = self.request.services, self.request.identity, self._organization
        for permission in _CREATE:
            self._require(permission)
        once = form.text(SUBMISSION_ID_FIELD)
        if once and not services.idempotency.claim_token(principal.id or "", once):
            raise Conflict(_("This was already sent. Go back and check the list."))
        name = form.text(_NAME_FIELD)
        command = CreateServiceUser.decode({_NAME_FIELD: name, "user_name": self._free_user_name()})
        user = services.service_users.create(organization.id, command)
        roles = AddManager(user_id=user.id, roles=frozenset({ROLE_NAME}))
        # Before the role: the token of a service user with more rights than the caller's would be refused.
        token = AddPersonalAccessToken.decode({"name": "SCIM"})
        services.managers.add(self._resource, roles, principal=principal)
        _stored, self.secret = services.service_users.add_personal_access_token(user.id, token, principal=principal)
        return self.get()

    @property
    def _organization(self) -> Organization:
        organization: Organization = self.context.entity
        return organization

    @property
    def _resource(self) -> Resource:
        return Resource.of_organization(self._organization.id)

    @cached_property
    def _programs(self) -> Sequence[ProvisioningProgram]:
        services = self.request.services
        managers = iterate_rows(partial(services.managers.page, self._resource, principal=self.request.identity))
        ids = [manager.user_id for manager in managers if ROLE_NAME in manager.roles]
        users = services.storage.users.find_many(ids).values()
        return [ProvisioningProgram(user, self._newest_token(user)) for user in users if isinstance(user, ServiceUser)]

    def _newest_token(self, user: ServiceUser) -> PersonalAccessToken | None:
        tokens = self.request.services.service_users.page_personal_access_tokens(user.id, PageRequest(limit=1))
        return next(iter(tokens), None)

    def _require(self, permission: str) -> None:
        self.request.services.access_control.require(self.request.identity, permission, self._resource)

    def _free_user_name(self) -> str:
        """``scim``, with a number if it is taken. A racing request gets an error, and can repeat."""
        users, number = self.request.services.storage.users, 1
        while users.find_by_name(self._organization.id, name := name_key(f"scim{number if number > 1 else ''}")):
            number += 1
        return name
