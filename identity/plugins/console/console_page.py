"""ConsolePage, the base of all console pages: navigation, breadcrumbs, permission checks and flash messages."""

import logging
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

from markupsafe import Markup, escape
from pyramid.interfaces import IRoutesMapper
from pyramid.request import Request

from identity.api.plugins import cached_property
from identity.domain.applications import Application
from identity.domain.audit import AuditEvent
from identity.domain.errors import Conflict, NotFound
from identity.domain.expirations import TimeLimited
from identity.domain.messages import Message
from identity.domain.messages import gettext_lazy as _
from identity.domain.organizations import Organization
from identity.domain.permissions import Resource
from identity.domain.projects import Project
from identity.http.route_contexts import RouteContext
from identity.pages.event_labels import FLASH_MESSAGES
from identity.pages.flash_messages import flashed_event
from identity.pages.forms import SUBMISSION_ID_FIELD, Form
from identity.pages.layout import NavigationGroup, NavigationItem, OrganizationSwitcher
from identity.pages.signed_in_page import SignedInPage
from identity.plugins.console.badges import Badge, EntityLink, end_badge
from identity.plugins.console.event_messages import event_message
from identity.provider.endpoints.metadata import discovery_document_members
from identity.services.access_control import Principal, VisibleEntityT
from identity.storage.paging import PageRequest, ResultPage

if TYPE_CHECKING:
    from identity.services.container import Services

log = logging.getLogger(__name__)

EntityT = TypeVar("EntityT")
RenderedT = TypeVar("RenderedT")

CONSOLE_PATH = "/console"
SEARCH_PATH = f"{CONSOLE_PATH}/search"
SEARCH_ROUTE = "console.search"
Breadcrumbs = Sequence[tuple[str, str]]
_MAX_SWITCHER_ORGANIZATIONS = 8

#: Judged again by the service: see ApplicationService.can_change.
_APPLICATION_PERMISSIONS = ("application.write", "application.delete")


@dataclass(frozen=True)
class NavigationSection:
    """A navigation link: last path segment, label, icon, and the permission to see it. ``allows_partial_access``
    shows it to managers who hold the permission on a resource inside the organization only. ``help_page`` is the page
    of the documentation about it.
    """

    name: str
    label: str
    icon: str
    permission: str
    help_page: str = "how-to/administrators/console"
    allows_partial_access: bool = False


OVERVIEW_SECTION = NavigationSection("overview", _("Overview"), "overview", "organization.read")
#: Shown if the ini file has a directory for the organization.
DIRECTORIES_SECTION = "directories"
ORGANIZATION_SECTIONS = (
    NavigationSection("users", _("Users"), "users", "user.read", "how-to/administrators/users"),
    NavigationSection("attributes", _("Attributes"), "settings", "attribute.read", "how-to/administrators/attributes"),
    NavigationSection(
        "service-users", _("Service users"), "service", "service_user.read", "how-to/administrators/service-user-keys"
    ),
    NavigationSection("groups", _("Groups"), "groups", "group.read", "how-to/administrators/groups"),
    NavigationSection(
        "projects",
        _("Projects"),
        "project",
        "project.read",
        "how-to/administrators/applications",
        allows_partial_access=True,
    ),
    NavigationSection(
        "granted-projects",
        _("Granted projects"),
        "grant",
        "project_grant.read",
        "how-to/administrators/managers-and-roles",
        allows_partial_access=True,
    ),
    NavigationSection(
        "upstream-providers",
        _("Identity providers"),
        "door",
        "upstream_provider.read",
        "how-to/administrators/identity-providers",
    ),
    NavigationSection(DIRECTORIES_SECTION, _("Directories"), "key", "upstream_provider.read", "how-to/operators/ldap"),
    NavigationSection("webhooks", _("Webhooks"), "webhook", "webhook.read", "how-to/administrators/webhooks"),
    NavigationSection("", _("Organization"), "organization", "organization.read"),
    NavigationSection("policy", _("Sign-in policy"), "lock", "organization.read", "how-to/administrators/policies"),
    NavigationSection("audit-events", _("Audit events"), "audit", "audit_event.read", "reference/events"),
    NavigationSection("token-preview", _("Token preview"), "preview", "user.read"),
)
INSTANCE_SECTIONS = (
    NavigationSection("organizations", _("Organizations"), "organization", "organization.read"),
    NavigationSection(
        "instance",
        _("Instance overview"),
        "overview",
        "instance_manager.read",
        "how-to/administrators/managers-and-roles",
    ),
    NavigationSection(
        "instance/policy", _("Sign-in policy"), "lock", "instance.read", "how-to/administrators/policies"
    ),
    NavigationSection("instance/mail-server", _("Mail server"), "mail", "instance.write", "how-to/operators/mail"),
    NavigationSection("instance/sent-mails", _("Sent mails"), "mail", "instance.read", "how-to/operators/mail"),
    NavigationSection(
        "instance/mail-texts", _("Texts of mails"), "mail", "instance.write", "how-to/administrators/mail-texts"
    ),
    NavigationSection("instance/signing-keys", _("Signing keys"), "key", "signing_key.read", "how-to/operators/keys"),
    NavigationSection("instance/webhooks", _("Webhooks"), "webhook", "instance.read", "how-to/administrators/webhooks"),
    NavigationSection("instance/plugins", _("Plugins"), "apps", "instance.read", "reference/settings"),
    NavigationSection(
        "instance/legal-holds", _("Legal holds"), "lock", "legal_hold.read", "how-to/operators/retention"
    ),
    NavigationSection("audit-events", _("All audit events"), "audit", "audit_event.read", "reference/events"),
)


class ConsolePage(SignedInPage):
    """A page for managers. Its context is the route's RouteContext."""

    context: RouteContext
    home_path = CONSOLE_PATH
    flash_messages = FLASH_MESSAGES
    #: The label of the section's list in breadcrumbs.
    section_label: ClassVar[str] = ""

    @property
    def section(self) -> str:
        """The name of the page's navigation section."""
        return ""

    @property
    def help_path(self) -> str:
        """The documentation of the page's section, if a plugin shows it."""
        folder = self.request.registry.get("documentation_path")
        if folder is None:
            return ""
        sections = INSTANCE_SECTIONS if self.is_instance_page else ORGANIZATION_SECTIONS
        section = next((item for item in sections if item.name == self.section), OVERVIEW_SECTION)
        return f"{folder}/{section.help_page}.html"

    @property
    def is_instance_page(self) -> bool:
        """True for instance pages: their section is one of INSTANCE_SECTIONS."""
        return False

    def entity_of(self, model: type[EntityT]) -> EntityT:
        """The entity that the route's context factory found, which is a ``model``."""
        entity = self.context.entity
        if not isinstance(entity, model):
            raise TypeError(f"{self.request.path} is not about a {model.__name__}")
        return entity

    @property
    def principal(self) -> Principal:
        principal: Principal = self.request.identity
        return principal

    @cached_property
    def discovery_document(self) -> Mapping[str, Any]:
        identity = self.request.registry.application
        return discovery_document_members(identity.protocol_registry, identity.settings)

    @property
    def services(self) -> "Services":
        services: Services = self.request.services
        return services

    @property
    def resource(self) -> Resource:
        """The resource on which permissions are checked. Every route of the console sets one."""
        if self.context.resource is None:
            raise NotFound("page", self.request.path)
        return self.context.resource

    @cached_property
    def organization(self) -> Organization | None:
        """The organization of the page; on instance pages the caller's own, for the navigation."""
        value, resource = self.context.entity, self.resource
        if isinstance(value, Organization):
            return value
        identifier = resource.organization_id
        if resource.grantee is not None and not self._can_see_organization(identifier):
            # Managers of the grantee see the project grant inside their own organization.
            identifier = resource.grantee.id
        if identifier is None:
            return self.subject.organization
        return self.services.organizations.get(identifier)

    @property
    def base_path(self) -> str:
        organization = self.organization
        return CONSOLE_PATH if organization is None else f"{CONSOLE_PATH}/organizations/{organization.id}"

    def has_permission(self, permission: str) -> bool:
        """Whether the caller holds the permission on the page's resource. Buttons are hidden without it."""
        required, value = self.context.effective_permission(permission), self.context.entity
        allowed: bool = self.services.access_control.is_permitted(self.principal, required, self.resource)
        if permission in _APPLICATION_PERMISSIONS and isinstance(value, Project | Application):
            return allowed and self.services.applications.can_change(value, principal=self.principal)
        return allowed

    # --- texts: class attributes if constant, properties otherwise ---

    @property
    def title(self) -> str:
        raise NotImplementedError

    @property
    def breadcrumbs(self) -> Breadcrumbs:
        """Label and path of each parent page."""
        return self.list_breadcrumbs

    @property
    def list_breadcrumbs(self) -> Breadcrumbs:
        return [(self.section_label, f"{self.base_path}/{self.section}")] if self.section_label else ()

    @property
    def search_path(self) -> str:
        routes = self.request.registry.queryUtility(IRoutesMapper)
        return SEARCH_PATH if routes.get_route(SEARCH_ROUTE) is not None else ""

    @property
    def title_suffix(self) -> str:
        """Follows the title in the browser's tab."""
        if self.breadcrumbs:
            return self.breadcrumbs[-1][0]
        return "" if self.organization is None or self.is_instance_page else self.organization.name

    @property
    def message_values(self) -> Mapping[str, object]:
        """Values for placeholders such as ``{name}`` in the page's texts."""
        return {}

    def translate(self, sentence: str) -> Markup:
        """The message in the page's language with its placeholders filled; other text, such as a name, is returned
        unchanged.
        """
        if not isinstance(sentence, Message):
            return escape(sentence)
        open_places = "{" in sentence.template and not sentence.values
        return (
            self.translator.gettext(sentence, **self.message_values)
            if open_places
            else self.translator.gettext(sentence)
        )

    def common_variables(self) -> Mapping[str, object]:
        return {
            **super().common_variables(),
            "title": self.translate(self.title),
            "parent": self.translate(self.title_suffix),
            "trail": [(self.translate(text), href) for text, href in self.breadcrumbs],
            "may": self.has_permission,
            "root": self.base_path,
            "organization": self.organization,
        }

    def button_link(
        self, label: str, href: str, *, hidden_label: str = "", permission: str = "", **look: object
    ) -> Markup:
        """A link styled as a button; ``hidden_label`` completes its label for screen readers. Empty for callers without
        the ``permission``.
        """
        if permission and not self.has_permission(permission):
            return Markup()
        link: Markup = self.template_macros.button_link(
            self.translate(label), href, what=self.translate(hidden_label), **look
        )
        return link

    def row_buttons(self, href: str, row_name: str, *, remove: str, change: bool = True, query: str = "") -> Markup:
        """The buttons to change and remove a row."""
        removes = self.button_link(remove, f"{href}/delete{query}", hidden_label=row_name, small=True)
        if not change:
            return removes
        return self.button_link(_("Change"), f"{href}/edit{query}", hidden_label=row_name, small=True) + " " + removes

    def entity_cell(self, named: EntityLink, *, is_person: bool = True) -> Markup:
        drawn: Markup = self.components.named(named.name, named.href, named.secondary_text, square=not is_person)
        return drawn

    def entity_link(self, named: EntityLink) -> Markup:
        drawn: Markup = self.template_macros.link(named.name, named.href) if named.href else escape(named.name)
        return drawn

    def render_end(self, entity: TimeLimited) -> Markup:
        """A badge with the end of roles, after a space; empty for roles without an end."""
        badge = end_badge(entity.until, self.services.now, self.translator)
        return Markup() if badge is None else Markup(" ") + self.render_badge(badge)

    def render_badge(self, badge: Badge | None) -> Markup:
        drawn: Markup = Markup() if badge is None else self.template_macros.badge(badge.text, badge.kind)
        return drawn

    def relative_time(self, moment: datetime | None) -> Markup:
        """A relative time, or a placeholder for never."""
        drawn: Markup = self.render_placeholder(_("Never")) if moment is None else self.template_macros.ago(moment)
        return drawn

    def render_manager_roles(self, names: Iterable[str]) -> Markup:
        """Label and name of each manager role."""
        return Markup().join(Markup("<div>{}</div>").format(self._manager_role(name)) for name in sorted(names))

    def _manager_role(self, name: str) -> Markup:
        code: Markup = self.template_macros.code(name)
        role = self.services.access_control.find_role(name)
        if role is None or not role.label:
            return code
        return Markup("{} {}").format(self.translate(role.label), self.template_macros.below(code))

    def render_role_names(self, names: Iterable[str]) -> Markup:
        return Markup(", ").join(self.template_macros.code(name) for name in sorted(names))

    def render_placeholder(self, sentence: str) -> Markup:
        return Markup('<span class="muted">{}</span>').format(self.translate(sentence))

    # --- flash messages ---

    def flash_message(self) -> object:
        event = flashed_event(self.request)
        if event is None or event.event not in self.flash_messages:
            return None
        message = self.translator.gettext(event_message(event, self.services.storage))
        if self._may_read(event):
            link = Markup(' <a href="{}/audit-events/{}">{}</a>').format(
                CONSOLE_PATH, event.id, self.translator.gettext("Audit event")
            )
            message += link
        return message

    def _may_read(self, event: AuditEvent) -> bool:
        resource = (
            Resource.INSTANCE if event.organization_id is None else Resource.of_organization(event.organization_id)
        )
        return self.services.access_control.is_permitted(self.principal, "audit_event.read", resource)

    # --- forms ---

    def redeem_submission_id(self, form: Form, sentence: str | None = None) -> None:
        """Consume the form's submission id, so that submitting twice creates once. Raises Conflict the second time."""
        once = form.text(SUBMISSION_ID_FIELD)
        if once and not self.services.idempotency.claim_token(self.principal.id or "", once):
            raise Conflict(sentence or _("This was already sent. Go back and check the list."))

    # --- navigation ---

    def navigation(self) -> tuple[NavigationGroup, ...]:
        groups = [
            NavigationGroup(items=tuple(self._navigation_items(self.base_path, (OVERVIEW_SECTION,), organization=True)))
        ]
        organization = self.organization
        if organization is not None:
            items = tuple(self._navigation_items(self.base_path, ORGANIZATION_SECTIONS, organization=True))
            groups.append(NavigationGroup(title=organization.name, items=items))
        groups.append(
            NavigationGroup(
                title=self.translator.gettext("Instance"),
                items=tuple(self._navigation_items(CONSOLE_PATH, INSTANCE_SECTIONS, organization=False)),
            )
        )
        groups.append(NavigationGroup(items=tuple(self._plugin_navigation())))
        return tuple(group for group in groups if group.items)

    def _navigation_items(
        self, root: str, sections: Sequence[NavigationSection], *, organization: bool
    ) -> Iterator[NavigationItem]:
        current_section = self.section if self.is_instance_page is not organization else None
        for section in sections:
            if self._can_read_section(section, organization=organization):
                href = f"{root}/{section.name}".rstrip("/")
                yield NavigationItem(
                    label=self.translator.gettext(section.label),
                    href=href,
                    icon=section.icon,
                    is_current=section.name == current_section,
                )

    def _can_read_section(self, section: NavigationSection, *, organization: bool) -> bool:
        access = self.services.access_control
        if not organization:
            return section.permission in access.list_permissions(self.principal, Resource.INSTANCE)
        if self.organization is None:
            return False
        if section.name == DIRECTORIES_SECTION and not self.services.directories.list_of_organization(
            self.organization
        ):
            return False
        resource = Resource.of_organization(self.organization.id)
        if section.allows_partial_access:
            return bool(access.permitted_children(self.principal, section.permission, resource) != frozenset())
        return section.permission in access.list_permissions(self.principal, resource)

    def _plugin_navigation(self) -> Iterator[NavigationItem]:
        arguments = {"principal": self.principal, "organization": self.organization}
        return self.call_console_hook(
            "console_navigation", lambda item: replace(item, label=self.translate(item.label)), **arguments
        )

    def call_console_hook(
        self, hook: str, draw: Callable[[Any], RenderedT], **arguments: object
    ) -> Iterator[RenderedT]:
        """The rendered results of a console hook. Failing plugins are logged and skipped."""
        for plugin, implementation in self.request.registry.application.plugin_host.implementations(hook):
            try:
                yield from [draw(item) for item in implementation(**arguments) or ()]
            except Exception:
                log.exception("the hook %s of the plugin %s failed", hook, plugin)

    def organization_switcher(self) -> OrganizationSwitcher | None:
        """The organizations that the caller manages; switching keeps the current section."""
        known = self._switchable_organizations()
        organization = self.organization
        if organization is None or len(known) < 2:
            return None
        section = self.section if not self.is_instance_page else "overview"
        items = [
            NavigationItem(
                label=item.name,
                href=f"{CONSOLE_PATH}/organizations/{item.id}/{section}".rstrip("/"),
                is_current=item.id == organization.id,
            )
            for item in known
        ]
        items.append(
            NavigationItem(label=self.translator.gettext("All organizations …"), href=f"{CONSOLE_PATH}/organizations")
        )
        return OrganizationSwitcher(
            prefix=self.translator.gettext("Organization:"),
            label=organization.name,
            heading=self.translator.gettext("Your organizations"),
            items=tuple(items),
        )

    def _switchable_organizations(self) -> list[Organization]:
        """Up to eight: the current one, the caller's own, those with manager roles; for managers of the instance the
        first by name.
        """
        preferred_ids = [
            organization.id
            for organization in (self.organization, self.subject.organization)
            if organization is not None
        ]
        visible_ids = self.services.access_control.visible_organization_ids(self.principal)
        storage = self.services.storage
        if visible_ids is None:
            found = {
                organization.id: organization
                for organization in storage.organizations.page(PageRequest(limit=_MAX_SWITCHER_ORGANIZATIONS))
            }
            missing = [item for item in preferred_ids if item not in found]
            found |= storage.organizations.find_many(missing)
            ids = [*preferred_ids, *found]
        else:
            ids = [item for item in (*preferred_ids, *sorted(visible_ids)) if item in visible_ids]
            found = dict(storage.organizations.find_many(ids[: _MAX_SWITCHER_ORGANIZATIONS + 1]))
        found = {
            organization.id: organization
            for organization in self.services.access_control.filter_visible(self.principal, found.values())
        }
        chosen = dict.fromkeys(item for item in ids if item in found)
        return sorted(
            (found[item] for item in list(chosen)[:_MAX_SWITCHER_ORGANIZATIONS]),
            key=lambda organization: organization.name.casefold(),
        )

    def filter_page(self, page: ResultPage[VisibleEntityT]) -> ResultPage[VisibleEntityT]:
        """The page without rows that plugins deny to the caller."""
        return self.services.access_control.filter_page(self.principal, page)

    def _can_see_organization(self, organization_id: str | None) -> bool:
        sees: bool = organization_id is not None and self.services.access_control.can_see_organization(
            self.principal, organization_id
        )
        return sees


class _FramedPage(ConsolePage):
    """The frame around a page of another plugin."""

    section = ""

    def __init__(self, context: RouteContext, request: Request, section: str) -> None:
        super().__init__(context, request)
        self.section = section


def console_frame(request: Request, context: RouteContext, section: str) -> Mapping[str, object]:
    """Frame and flash message for a page of another plugin below /console."""
    return SignedInPage.common_variables(_FramedPage(context, request, section))


def path_value(page: ConsolePage, name: str) -> str:
    """A value from the URL path."""
    return str(page.request.matchdict[name])


def find_child(
    page: ConsolePage, found: Iterable[EntityT], name: str, key: Callable[[EntityT], str], kind: str = ""
) -> EntityT:
    """The child whose ``key`` equals the value ``name`` in the URL path. Raises NotFound for ``kind``, or ``name``."""
    identifier = path_value(page, name)
    for item in found:
        if key(item) == identifier:
            return item
    raise NotFound(kind or name, identifier)
