"""Service users: list, create, detail page, edit, deactivate and delete."""

from collections.abc import Mapping, Sequence
from functools import partial

from identity.crypto.secrets import is_id
from identity.domain.deletion_impact import DeletionTarget
from identity.domain.messages import gettext_lazy as _
from identity.domain.organizations import Organization
from identity.domain.permissions import INSTANCE_WRITE
from identity.domain.users import Agent, ServiceUser, User
from identity.http.endpoint_routes import request_context
from identity.http.token_previews import find_user
from identity.plugins.console.actions import (
    REACTIVATION_HINT,
    AccessRevocation,
    Action,
    Deactivation,
    Deletion,
    Reactivation,
)
from identity.plugins.console.badges import Badge, keys_badge, state_badge
from identity.plugins.console.connect import CONNECT_PATH, ConnectServiceUserPage
from identity.plugins.console.console_page import ConsolePage
from identity.plugins.console.entity_forms import CreateForm, EditForm, create_route, edit_route
from identity.plugins.console.fields.service_users import AGENT_FIELDS, SERVICE_USER_FIELDS
from identity.plugins.console.form_fields import form_fields
from identity.plugins.console.lists import Cells, ListPage, OptionalColumn, ResourceList
from identity.plugins.console.page_sections import Descriptions
from identity.plugins.console.query_page import QueryPage
from identity.plugins.console.resource_pages import (
    DetailPage,
    ResourcePages,
    ResourceTab,
    Sections,
)
from identity.plugins.console.resource_types import ORGANIZATION, SERVICE_USER
from identity.plugins.console.resources.access import ACCESS_PATH, AccessPage
from identity.plugins.console.resources.activity import activity_tab
from identity.plugins.console.resources.audit_events import user_events_section
from identity.plugins.console.resources.federated_credentials import (
    SERVICE_USER_FEDERATED_CREDENTIALS,
    has_federated_credentials,
)
from identity.plugins.console.resources.selected_users import SERVICE_USER_BULK_ACTIONS
from identity.plugins.console.resources.service_user_credentials import KEYS, PERSONAL_ACCESS_TOKENS, SECRETS
from identity.plugins.console.selected_rows import selected_rows_routes
from identity.plugins.console.user_display import display_user
from identity.services.commands.service_users import ChangeServiceUser, CreateServiceUser
from identity.storage.paging import PageRequest, ResultPage
from identity.storage.stores.users import UserKind

KIND_FIELD, OWNER_FIELD = "kind", "owner"
_KIND_LABELS = {UserKind.SERVICE: _("Service user"), UserKind.AGENT: _("Agent")}


class ServiceUserListPage(QueryPage, ListPage):
    template = "console/service_users.html"
    fields = (KIND_FIELD, OWNER_FIELD)

    def fetch(self, request: PageRequest) -> ResultPage[ServiceUser]:
        """Those that match the filters; none if a filter is invalid."""
        parameters = self.query()
        kind, owner_id = parameters.get(KIND_FIELD, ""), self._find_owner_id(parameters.get(OWNER_FIELD, ""))
        if kind and kind not in _KIND_LABELS:
            self.problems[KIND_FIELD] = _("Choose one of the values offered.")
        if self.problems:
            return ResultPage(())
        organization = self.entity_of(Organization)
        return self.services.service_users.page(
            organization.id, request, kind=UserKind(kind) if kind else None, owner_user_id=owner_id
        )

    def _find_owner_id(self, text: str) -> str:
        """The id for an id or login name. With the id of a person whom the caller may not read, the list has only rows
        that it has anyway."""
        if not text or is_id(text):
            return text
        subject = find_user(request_context(self.request), self.principal, text)
        if subject is None:
            self.problems[OWNER_FIELD] = _("There is no such user.")
        return "" if subject is None else subject.user.id

    def is_filtered(self) -> bool:
        return bool(self.query())

    def filter_variables(self) -> Mapping[str, object]:
        return {"kinds": [(kind.value, self.translate(label)) for kind, label in _KIND_LABELS.items()]}


def _fetch(page: ConsolePage, request: PageRequest) -> ResultPage[ServiceUser]:
    if isinstance(page, ServiceUserListPage):
        return page.fetch(request)
    return page.services.service_users.page(page.entity_of(Organization).id, request)


def _rows(page: ConsolePage, users: Sequence[ServiceUser]) -> Sequence[Cells]:
    ui, now = page.template_macros, page.services.now
    summaries = page.services.storage.credentials.key_summaries([user.id for user in users], now)
    owners = page.services.storage.users.find_many({user.owner_user_id for user in users if isinstance(user, Agent)})
    return [
        (
            page.components.named(
                user.display_name, SERVICE_USER.path_of(user), sub=_owner_note(page, user, owners), square=True
            ),
            user.user_name,
            page.render_badge(_state_badge(page, user)),
            page.render_badge(keys_badge(summaries.get(user.id), now, page.translator))
            or page.render_placeholder(_("None")),
            page.relative_time(summaries[user.id].last_used_at if user.id in summaries else None),
            ui.when(user.created_at),
        )
        for user in users
    ]


def _owner_note(page: ConsolePage, user: ServiceUser, owners: Mapping[str, User]) -> str:
    """Whose agent it is; empty for other service users."""
    if not isinstance(user, Agent):
        return ""
    owner = owners.get(user.owner_user_id)
    return page.translate(_("Agent of {name}", name=user.owner_user_id if owner is None else owner.display_name))


def _state_badge(page: ConsolePage, user: ServiceUser) -> Badge:
    if user.active and isinstance(user, Agent) and user.stopped_at is not None:
        return Badge(page.translator.gettext("Stopped"), "warning")
    return state_badge(user.active, page.translator)


SERVICE_USERS = ResourceList(
    path="/service-users",
    permission="service_user.read",
    section="service-users",
    title=_("Service users"),
    lead=_("Programs that sign in without a person, with a key or a secret."),
    columns=(_("Name"), _("User name"), _("State"), _("Keys"), _("Last token"), _("Created")),
    optional_columns=lambda page: [
        OptionalColumn("description", _("Description"), lambda page, users: [user.description for user in users]),
        OptionalColumn("id", _("User id"), lambda page, users: [page.template_macros.code(user.id) for user in users]),
    ],
    sort_orders=(("user_name", _("User name")), ("display_name", _("Name")), ("created_at", _("Created"))),
    empty_title=_("No service users yet"),
    empty_text=_("A service user lets a program use your APIs. Create one, give it a key, and download the key file."),
    fetch=_fetch,
    rows=_rows,
    create="service_user.write",
    bulk=SERVICE_USER_BULK_ACTIONS,
    entity_label=_("service user"),
)

_FIELDS = form_fields(ServiceUser, SERVICE_USER_FIELDS)


_CREATE = CreateForm(
    title=_("New service user"),
    fields=_FIELDS,
    command=CreateServiceUser,
    create=lambda page, command: SERVICE_USER.path_of(
        page.services.service_users.create(page.entity_of(Organization).id, command)
    ),
)
_EDIT = EditForm[ServiceUser, ChangeServiceUser](
    fields=_FIELDS,
    command=ChangeServiceUser,
    change=lambda page, user, command, version: page.services.service_users.change(
        user.id, command, expected_version=version, principal=page.principal
    ),
)

_ACTIONS = (
    Action[ServiceUser](
        path="/allow-management",
        permission=INSTANCE_WRITE,
        run=lambda page, user: page.services.service_users.change(
            user.id, ChangeServiceUser(may_manage=True), principal=page.principal
        ),
        is_available=lambda page, user: isinstance(user, Agent) and not user.may_manage,
        label=_("Allow management"),
        button=_("Allow management …"),
        title=_("Let the agent “{name}” use the management API?"),
        description=_("The agent can then use its manager roles, as far as its owner has them."),
        impact=(
            _("A manager role of the agent counts only while its owner has all of its permissions."),
            _("It never creates keys, secrets or agents."),
        ),
        submit_label=_("Allow management"),
        cancel_label=_("Cancel"),
    ),
    Action[ServiceUser](
        path="/forbid-management",
        permission=INSTANCE_WRITE,
        run=lambda page, user: page.services.service_users.change(
            user.id, ChangeServiceUser(may_manage=False), principal=page.principal
        ),
        is_available=lambda page, user: isinstance(user, Agent) and user.may_manage,
        label=_("Forbid management"),
        button=_("Forbid management …"),
        title=_("Forbid the agent “{name}” to use the management API?"),
        description=_("The management API refuses it with its next request."),
        impact=(_("Its tokens work elsewhere as before."),),
        submit_label=_("Forbid management"),
        is_destructive=False,
    ),
    Deactivation[ServiceUser](
        run=lambda page, user: page.services.service_users.deactivate(user.id, principal=page.principal),
        title=_("Deactivate the service user “{name}”?"),
        description=_("Its tokens stop working at once. You can reactivate it later."),
        impact=(_("Its keys, secrets and tokens stop working at once."), REACTIVATION_HINT),
        submit_label=_("Deactivate service user"),
    ),
    AccessRevocation[ServiceUser](
        run=lambda page, entity: page.services.access_revocations.revoke_service_user(
            entity.id, principal=page.principal
        ),
        target=DeletionTarget.USER,
        confirm=lambda page, user: user.user_name,
    ),
    Reactivation[ServiceUser](
        run=lambda page, user: page.services.service_users.reactivate(user.id, principal=page.principal),
        title=_("Reactivate the service user “{name}”?"),
        description=_("Its keys, secrets and tokens work again."),
        impact=(_("Its keys, secrets and tokens that have not expired work again."),),
        submit_label=_("Reactivate service user"),
    ),
    Deletion[ServiceUser](
        run=lambda page, user: page.services.service_users.remove(user.id, principal=page.principal),
        target=DeletionTarget.USER,
        confirm=lambda page, user: user.user_name,
        title=_("Delete the service user “{name}”?"),
        description=_("Permanently removes the service user, its keys and its roles."),
        impact=(_("This cannot be undone. Programs that use it lose access at once."),),
        submit_label=_("Delete service user"),
    ),
)


def _descriptions(page: DetailPage[ServiceUser], user: ServiceUser) -> Descriptions:
    return [
        *_agent_descriptions(page, user),
        *page.field_descriptions(user, AGENT_FIELDS if isinstance(user, Agent) else SERVICE_USER_FIELDS),
        (_("Created"), page.template_macros.when(user.created_at)),
        (_("User id"), page.template_macros.identifier(user.id)),
    ]


def _agent_descriptions(page: DetailPage[ServiceUser], user: ServiceUser) -> Descriptions:
    """Whose agent it is, and what follows from that; empty for other service users."""
    if not isinstance(user, Agent):
        return []
    ui, owner = page.template_macros, page.services.storage.users.find_subject(user.owner_user_id)
    link = None if owner is None else display_user(page, owner)
    return [
        (_("Acts for"), ui.identifier(user.owner_user_id) if link is None else page.entity_link(link)),
        (_("Stopped"), ui.when(user.stopped_at, relative=True) if user.stopped_at else ""),
    ]


class _ConnectPage(ConnectServiceUserPage):
    @property
    def federated_href(self) -> str:
        template = _ISSUER_TEMPLATES.get(self.framework.key)
        is_offered = (
            template is not None
            and not isinstance(self.entity, Agent)
            and self.has_permission("service_user.write")
            and has_federated_credentials(self, self.entity)
        )
        return f"{self.resource_path}/federated-credentials/new?template={template}" if is_offered else ""


#: The issuer of a platform's tokens, by framework.
_ISSUER_TEMPLATES = {"github-actions": "github", "kubernetes": "kubernetes"}


def _credential_sections(page: DetailPage[ServiceUser], user: ServiceUser) -> Sections:
    if isinstance(user, Agent):
        return [page.list_section(KEYS, lead=_("Only the person for whom the agent acts creates keys."))]
    return [
        page.list_section(KEYS),
        page.list_section(SERVICE_USER_FEDERATED_CREDENTIALS.resource_list)
        if has_federated_credentials(page, user)
        else None,
        SECRETS.section(page),
        page.list_section(PERSONAL_ACCESS_TOKENS),
    ]


_PAGES = ResourcePages(
    type=SERVICE_USER,
    lead=lambda page, user: [_("Agent") if isinstance(user, Agent) else _("Service user")],
    badges=lambda page, user: [_state_badge(page, user)],
    descriptions=_descriptions,
    tabs=(
        ResourceTab(label=_("Credentials"), sections=_credential_sections),
        ResourceTab(label=_("Connect"), path=CONNECT_PATH, page=_ConnectPage),
        ResourceTab(label=_("Access"), path=ACCESS_PATH, page=AccessPage),
        activity_tab(lambda page, user: [user_events_section(page, user.id)]),
    ),
    avatar=lambda page, user: user.display_name,
    actions=_ACTIONS,
)

ROUTES = (
    ORGANIZATION.route(
        SERVICE_USERS.path,
        partial(ServiceUserListPage, resource_list=SERVICE_USERS, parent=ORGANIZATION),
        SERVICE_USERS.permission,
    ),
    *selected_rows_routes(SERVICE_USERS, ORGANIZATION),
    create_route(_CREATE, SERVICE_USERS, ORGANIZATION),
    edit_route(SERVICE_USER, _EDIT),
    *_PAGES.routes(),
)
