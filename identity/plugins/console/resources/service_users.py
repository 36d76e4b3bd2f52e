"""Service users: list, create, detail page, edit, deactivate and delete."""

from collections.abc import Sequence
from typing import Any

from identity.domain.messages import gettext_lazy
from identity.domain.users import ServiceUser
from identity.http import route_contexts
from identity.plugins.console.action_page import REACTIVATION_HINT, DeactivatePage, DeletePage, ReactivatePage
from identity.plugins.console.audience_scopes import project_audience_scope
from identity.plugins.console.badges import keys_badge, state_badge
from identity.plugins.console.console_page import CONSOLE_PATH
from identity.plugins.console.detail_page import ResourceDetailPage
from identity.plugins.console.fields.service_users import SERVICE_USER_FIELDS
from identity.plugins.console.form_fields import form_fields
from identity.plugins.console.form_page import CreatePage, EditPage
from identity.plugins.console.list_page import Cells, ListPage
from identity.plugins.console.memberships import manager_roles_section
from identity.plugins.console.page_sections import Descriptions, NoteSection, PageSection
from identity.plugins.console.resource_page import ServiceUserResourcePage, resource_routes
from identity.plugins.console.resources.audit_events import user_events_section
from identity.plugins.console.resources.held_grants import HELD_GRANTS
from identity.plugins.console.resources.service_user_keys import ServiceUserKeyListPage
from identity.plugins.console.resources.service_user_secrets import (
    PersonalAccessTokenListPage,
    service_user_secret_section,
)
from identity.plugins.console.routes import ConsoleRoute
from identity.services.commands.service_users import ChangeServiceUser, CreateServiceUser
from identity.storage.paging import PageRequest, ResultPage
from identity.storage.stores.users import UserKind


class ServiceUserListPage(ListPage):
    section = "service-users"
    title = gettext_lazy("Service users")
    lead = gettext_lazy("Programs that sign in without a person, with a key or a secret.")
    columns = (
        gettext_lazy("Name"),
        gettext_lazy("User name"),
        gettext_lazy("State"),
        gettext_lazy("Keys"),
        gettext_lazy("Last token"),
        gettext_lazy("Created"),
    )
    sort_orders = (
        ("user_name", gettext_lazy("User name")),
        ("display_name", gettext_lazy("Name")),
        ("created_at", gettext_lazy("Created")),
    )
    empty_title = gettext_lazy("No service users yet")
    empty_text = gettext_lazy(
        "A service user lets a program use your APIs. Create one, give it a key, and download the key file."
    )
    create_permission, entity_label = "service_user.write", gettext_lazy("service user")

    def fetch_page(self, page_request: PageRequest) -> ResultPage[Any]:
        return self.services.storage.users.page(self.context.entity.id, UserKind.SERVICE, page_request)

    def build_rows(self, found: Sequence[ServiceUser]) -> Sequence[Cells]:
        now = self.services.now
        summaries = self.services.storage.credentials.key_summaries([service_user.id for service_user in found], now)
        return [
            (
                self.template_macros.named(
                    service_user.display_name, f"{CONSOLE_PATH}/service-users/{service_user.id}"
                ),
                service_user.user_name,
                self.render_badge(state_badge(service_user.active, self.translator)),
                self.render_badge(keys_badge(summaries.get(service_user.id), now, self.translator))
                or self.render_placeholder(gettext_lazy("None")),
                self.relative_time(summaries[service_user.id].last_used_at if service_user.id in summaries else None),
                self.template_macros.when(service_user.created_at),
            )
            for service_user in found
        ]


_FIELDS = form_fields(ServiceUser, SERVICE_USER_FIELDS)


class ServiceUserCreatePage(CreatePage):
    section, section_label = "service-users", gettext_lazy("Service users")
    title = gettext_lazy("New service user")
    form_fields = _FIELDS
    command = CreateServiceUser
    resource_path = "service-users"

    def create(self, command: CreateServiceUser) -> Any:
        return self.services.service_users.create(self.context.entity.id, command)


_ACTIONS = (
    DeactivatePage.for_resource(
        ServiceUserResourcePage,
        title=gettext_lazy("Deactivate the service user “{name}”?"),
        description=gettext_lazy("Its tokens stop working at once. You can reactivate it later."),
        impact=(gettext_lazy("Its keys, secrets and tokens stop working at once."), REACTIVATION_HINT),
        submit_label=gettext_lazy("Deactivate service user"),
    ),
    ReactivatePage.for_resource(
        ServiceUserResourcePage,
        title=gettext_lazy("Reactivate the service user “{name}”?"),
        description=gettext_lazy("Its keys, secrets and tokens work again."),
        impact=(gettext_lazy("Its keys, secrets and tokens that have not expired work again."),),
        submit_label=gettext_lazy("Reactivate service user"),
    ),
    DeletePage.for_resource(
        ServiceUserResourcePage,
        title=gettext_lazy("Delete the service user “{name}”?"),
        description=gettext_lazy("Removes the service user, its keys and its roles for ever."),
        undone=gettext_lazy("This cannot be undone. Programs that use it lose access at once."),
        submit_label=gettext_lazy("Delete service user"),
    ),
)


class ServiceUserDetailPage(ServiceUserResourcePage, ResourceDetailPage):
    actions = _ACTIONS

    @property
    def lead(self) -> Sequence[str]:
        return [gettext_lazy("Service user"), self.entity.user_name]

    @property
    def descriptions(self) -> Descriptions:
        user = self.entity
        return [
            (gettext_lazy("User id"), self.template_macros.identifier(user.id)),
            *self.field_descriptions(self.entity, SERVICE_USER_FIELDS),
            (gettext_lazy("Created"), self.template_macros.when(user.created_at, relative=True)),
        ]

    @property
    def sections(self) -> Sequence[PageSection | NoteSection | None]:
        roles, scope = manager_roles_section(self, self.entity.id), project_audience_scope(self)
        asks = self.translator.gettext(
            "To use the management API, the program requests its token with the scope {scope}",
            scope=self.template_macros.identifier(f"openid {scope}"),
        )
        return [
            ServiceUserKeyListPage.bind_to_page(self).build_section(),
            service_user_secret_section(self),
            PersonalAccessTokenListPage.bind_to_page(self).build_section(),
            roles,
            NoteSection(asks) if roles.rows and scope else None,
            HELD_GRANTS[ServiceUserResourcePage].bind_to_page(self).build_section(),
            user_events_section(self, self.entity.id),
        ]


_LIST = "/organizations/{organization}/service-users"

ROUTES = (
    ConsoleRoute(_LIST, ServiceUserListPage, "service_user.read", route_contexts.organization_context),
    ConsoleRoute(f"{_LIST}/new", ServiceUserCreatePage, "service_user.write", route_contexts.organization_context),
    *resource_routes(
        ServiceUserDetailPage,
        EditPage.for_resource(ServiceUserResourcePage, form_fields=_FIELDS, command=ChangeServiceUser),
        *_ACTIONS,
    ),
)
