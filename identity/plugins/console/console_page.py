"""ConsolePage: what every page of the console has: navigation, the way here, what one may do, what was just done."""

import logging
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from operator import attrgetter
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

from markupsafe import Markup, escape

from identity.domain.applications import Application
from identity.domain.audit import AuditEvent
from identity.domain.errors import Conflict, NotFound
from identity.domain.organizations import Organization
from identity.domain.permissions import INSTANCE, Resource, organization_resource
from identity.domain.projects import Project
from identity.domain.words import Message, say
from identity.http.targets import Target
from identity.lazily import lazily
from identity.pages.event_words import TOLD
from identity.pages.forms import ONCE, Form
from identity.pages.frame import Group, Item, Switcher
from identity.pages.notices import told_event
from identity.pages.signed_in_page import SignedInPage
from identity.plugins.console.badges import Badge, Named
from identity.plugins.console.told import told_sentence
from identity.services.access import Principal, Seen
from identity.storage.paging import Page, PageRequest

if TYPE_CHECKING:
    from identity.services.bundle import Services

log = logging.getLogger(__name__)

Drawn = TypeVar("Drawn")

CONSOLE = "/console"
Trail = Sequence[tuple[str, str]]
_SWITCHABLE = 8

#: What the services judge once more: see Applications.may_change.
_OF_APPLICATIONS = ("application.write", "application.delete")


@dataclass(frozen=True)
class Section:
    """A link of the navigation: the last part of its address, its words and icon, and the permission to see it.

    ``parts`` if it is enough to hold the permission at something inside of the organization.
    """

    name: str
    label: str
    icon: str
    permission: str
    parts: bool = False


OVERVIEW = Section("overview", say("Overview"), "overview", "organization.read")
ORGANIZATION_SECTIONS = (
    Section("users", say("Users"), "users", "user.read"),
    Section("service-users", say("Service users"), "service", "service_user.read"),
    Section("projects", say("Projects"), "project", "project.read", parts=True),
    Section("granted-projects", say("Granted projects"), "grant", "project_grant.read", parts=True),
    Section("upstream-providers", say("Identity providers"), "key", "upstream_provider.read"),
    Section("", say("Organization"), "organization", "organization.read"),
    Section("policy", say("Sign-in policy"), "lock", "organization.read"),
    Section("audit-events", say("Audit events"), "audit", "audit_event.read"),
    Section("token-preview", say("Token preview"), "preview", "user.read"),
)
INSTANCE_SECTIONS = (
    Section("organizations", say("Organizations"), "organization", "organization.read"),
    Section("instance", say("Instance administrators"), "users", "instance_manager.read"),
    Section("instance/policy", say("Sign-in policy"), "lock", "instance.read"),
    Section("instance/signing-keys", say("Signing keys"), "key", "signing_key.read"),
    Section("instance/legal-holds", say("Legal holds"), "lock", "legal_hold.read"),
    Section("audit-events", say("All audit events"), "audit", "audit_event.read"),
)


class ConsolePage(SignedInPage):
    """A page of somebody who manages something. Its context is the Target that its address names."""

    context: Target
    home = CONSOLE
    #: The name of its Section.
    section: ClassVar[str] = ""
    #: What that list is called, on pages below it.
    under: ClassVar[str] = ""
    told = TOLD
    #: True for pages of the instance, whose section is one of INSTANCE_SECTIONS.
    of_instance: ClassVar[bool] = False

    @property
    def principal(self) -> Principal:
        """Who looks."""
        principal: Principal = self.request.identity
        return principal

    @property
    def services(self) -> "Services":
        """The use cases."""
        services: Services = self.request.services
        return services

    @property
    def resource(self) -> Resource:
        """Where permissions are judged: there is one wherever a page is shown."""
        if self.context.resource is None:
            raise NotFound("page", self.request.path)
        return self.context.resource

    @lazily
    def organization(self) -> Organization | None:
        """The organization that the page is about; on pages of the instance one's own, for the navigation."""
        value, resource = self.context.value, self.resource
        if isinstance(value, Organization):
            return value
        identifier = resource.organization_id
        if resource.holder is not None and not self._sees(identifier):
            # Whoever was granted a project looks at it from the own organization.
            identifier = resource.holder.id
        if identifier is None:
            return self.subject.organization
        return self.services.organizations.get(identifier)

    @property
    def root(self) -> str:
        """The address below which the pages of the organization lie."""
        organization = self.organization
        return CONSOLE if organization is None else f"{CONSOLE}/organizations/{organization.id}"

    def may(self, permission: str) -> bool:
        """True if whoever looks holds the permission on what the page is about: buttons are absent without it."""
        asked, value = self.context.permission(permission), self.context.value
        allowed: bool = self.services.access.may(self.principal, asked, self.resource)
        if permission in _OF_APPLICATIONS and isinstance(value, Project | Application):
            return allowed and self.services.applications.may_change(value, by=self.principal)
        return allowed

    # --- words: attributes where they are the same for all, properties where they are not ---------------------------

    @property
    def title(self) -> str:
        """The heading."""
        raise NotImplementedError

    @property
    def trail(self) -> Trail:
        """The way to the page: words and address of each page above it."""
        return self.list_above

    @property
    def list_above(self) -> Trail:
        """The list of its section, where the page lies below that."""
        return [(self.under, f"{self.root}/{self.section}")] if self.under else ()

    @property
    def parent(self) -> str:
        """What is said after the title in the browser's tab."""
        if self.trail:
            return self.trail[-1][0]
        return "" if self.organization is None or self.of_instance else self.organization.name

    @property
    def names(self) -> Mapping[str, object]:
        """What fills the places in the sentences that a page declares, such as ``{name}``."""
        return {}

    def said(self, sentence: str) -> Markup:
        """A declared sentence in the page's language, with its places filled; other text, such as a name, as it is."""
        if not isinstance(sentence, Message):
            return escape(sentence)
        open_places = "{" in sentence.template and not sentence.values
        return self.words.t(sentence, **self.names) if open_places else self.words.t(sentence)

    def shared(self) -> Mapping[str, object]:
        return {
            **super().shared(),
            "title": self.said(self.title),
            "parent": self.said(self.parent),
            "trail": [(self.said(text), href) for text, href in self.trail],
            "may": self.may,
            "root": self.root,
            "organization": self.organization,
        }

    def link(self, label: str, href: str, *, what: str = "", **look: object) -> Markup:
        """A link that looks like a button; ``what`` completes its words for those who do not see where it stands."""
        made: Markup = self.ui.button_link(self.said(label), href, what=self.said(what), **look)
        return made

    def buttons(self, href: str, what: str, *, remove: str, change: bool = True, query: str = "") -> Markup:
        """What one may do to a row, which ``what`` names: change and remove it."""
        removes = self.link(remove, f"{href}/delete{query}", what=what, small=True)
        if not change:
            return removes
        return self.link(say("Change"), f"{href}/edit{query}", what=what, small=True) + " " + removes

    def named(self, named: Named) -> Markup:
        """What names a row, with a link."""
        drawn: Markup = self.ui.named(named.name, named.href, named.sub)
        return drawn

    def linked(self, named: Named) -> Markup:
        """What a thing is called, with a link where there is one."""
        drawn: Markup = self.ui.link(named.name, named.href) if named.href else escape(named.name)
        return drawn

    def badge(self, badge: Badge | None) -> Markup:
        """A badge, drawn; nothing for none."""
        drawn: Markup = Markup() if badge is None else self.ui.badge(badge.text, badge.kind)
        return drawn

    def ago(self, moment: datetime | None) -> Markup:
        """How far away a moment is, or that it never was."""
        drawn: Markup = self.faint(say("Never")) if moment is None else self.ui.ago(moment)
        return drawn

    def roles(self, names: Iterable[str]) -> Markup:
        """Names of roles, literal; nothing for none."""
        return Markup(", ").join(self.ui.code(one) for one in sorted(names))

    def faint(self, sentence: str) -> Markup:
        """What stands where there is nothing to tell."""
        return Markup('<span class="muted">{}</span>').format(self.said(sentence))

    # --- what was done ---------------------------------------------------------------------------------------------

    def what_was_done(self) -> object:
        event = told_event(self.request)
        if event is None or event.event not in self.told:
            return None
        said = self.words.t(told_sentence(event, self.services.storage))
        if self._may_read(event):
            link = Markup(' <a href="{}/audit-events/{}">{}</a>').format(CONSOLE, event.id, self.words.t("Audit event"))
            said += link
        return said

    def _may_read(self, event: AuditEvent) -> bool:
        resource = INSTANCE if event.organization_id is None else organization_resource(event.organization_id)
        return self.services.access.may(self.principal, "audit_event.read", resource)

    # --- forms -----------------------------------------------------------------------------------------------------

    def use_once(self, form: Form, sentence: str | None = None) -> None:
        """Use up the form's single-use id, so that what it makes is made once. Raises Conflict the second time."""
        once = form.one(ONCE)
        if once and not self.services.idempotency.use_once(self.principal.id or "", once):
            raise Conflict(sentence or say("This was sent already. Go back and look at the list."))

    # --- navigation ------------------------------------------------------------------------------------------------

    def navigation(self) -> tuple[Group, ...]:
        groups = [Group(items=tuple(self._items(self.root, (OVERVIEW,), organization=True)))]
        organization = self.organization
        if organization is not None:
            items = tuple(self._items(self.root, ORGANIZATION_SECTIONS, organization=True))
            groups.append(Group(title=organization.name, items=items))
        groups.append(
            Group(
                title=self.words.t("Instance"),
                items=tuple(self._items(CONSOLE, INSTANCE_SECTIONS, organization=False)),
            )
        )
        groups.append(Group(items=tuple(self._of_plugins())))
        return tuple(group for group in groups if group.items)

    def _items(self, root: str, sections: Sequence[Section], *, organization: bool) -> Iterator[Item]:
        here = self.section if self.of_instance is not organization else None
        for one in sections:
            if self._reads(one, organization=organization):
                href = f"{root}/{one.name}".rstrip("/")
                yield Item(label=self.words.t(one.label), href=href, icon=one.icon, current=one.name == here)

    def _reads(self, section: Section, *, organization: bool) -> bool:
        access = self.services.access
        if not organization:
            return section.permission in access.permissions(self.principal, INSTANCE)
        if self.organization is None:
            return False
        resource = organization_resource(self.organization.id)
        if section.parts:
            return bool(access.parts(self.principal, section.permission, resource) != frozenset())
        return section.permission in access.permissions(self.principal, resource)

    def _of_plugins(self) -> Iterator[Item]:
        given = {"principal": self.principal, "organization": self.organization}
        return self.from_plugins("console_menu", lambda item: item, **given)

    def from_plugins(self, hook: str, draw: Callable[[Any], Drawn], **given: object) -> Iterator[Drawn]:
        """What plugins add by a hook of the console, drawn; one that fails adds nothing, and the page is there."""
        for plugin, implementation in self.request.registry.identity.host.implementations(hook):
            try:
                yield from [draw(one) for one in implementation(**given) or ()]
            except Exception:
                log.exception("the hook %s of the plugin %s failed", hook, plugin)

    def switcher(self) -> Switcher | None:
        """The organizations that whoever looks manages something of; the present section is kept."""
        known = self._switchable()
        here = self.organization
        if here is None or len(known) < 2:
            return None
        section = self.section if not self.of_instance else "overview"
        items = [
            Item(
                label=one.name,
                href=f"{CONSOLE}/organizations/{one.id}/{section}".rstrip("/"),
                current=one.id == here.id,
            )
            for one in known
        ]
        items.append(Item(label=self.words.t("All organizations …"), href=f"{CONSOLE}/organizations"))
        return Switcher(
            meaning=self.words.t("Organization:"),
            label=here.name,
            head=self.words.t("Your organizations"),
            items=tuple(items),
        )

    def _switchable(self) -> list[Organization]:
        """Up to eight: the present one, one's own, and others in which one holds a role, else the first by name."""
        wanted = [one.id for one in (self.organization, self.subject.organization) if one is not None]
        seen = self.services.access.seen_organizations(self.principal)
        storage = self.services.storage
        if seen is None:
            found = {one.id: one for one in storage.organizations.page(PageRequest(limit=_SWITCHABLE))}
            missing = [one for one in wanted if one not in found]
            found |= storage.organizations.find_many(missing)
            ids = [*wanted, *found]
        else:
            ids = [one for one in (*wanted, *sorted(seen)) if one in seen]
            found = dict(storage.organizations.find_many(ids[: _SWITCHABLE + 1]))
        found = {one.id: one for one in self.services.access.visible(self.principal, found.values())}
        chosen = dict.fromkeys(one for one in ids if one in found)
        return sorted((found[one] for one in list(chosen)[:_SWITCHABLE]), key=lambda one: one.name.casefold())

    def listed(self, found: Page[Seen]) -> Page[Seen]:
        """The page without rows that a plugin denies to whoever looks."""
        return self.services.access.page_of(self.principal, found)

    def _sees(self, organization_id: str | None) -> bool:
        sees: bool = organization_id is not None and self.services.access.sees(self.principal, organization_id)
        return sees


def matched(page: ConsolePage, name: str) -> str:
    """What stands in the address under this name."""
    found: str = page.request.matchdict[name]
    return found


def pick(page: ConsolePage, found: Iterable[Any], kind: str, name: str = "", by: str = "id") -> Any:
    """That one of those found which the address names, by its ``kind`` unless ``name`` says otherwise.

    Raises NotFound.
    """
    wanted = matched(page, name or kind)
    for one in found:
        if attrgetter(by)(one) == wanted:
            return one
    raise NotFound(kind, wanted)
