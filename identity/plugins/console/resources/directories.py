"""Directories of an organization, read-only as the ini file says, and a test of the connection."""

from collections.abc import Mapping, Sequence

from pyramid.response import Response

from identity.domain.directories import OrganizationDirectory
from identity.domain.messages import gettext_lazy as _
from identity.domain.organizations import Organization
from identity.domain.permissions import INSTANCE_WRITE, Resource
from identity.pages.forms import Form
from identity.pages.page import FormPage, FormRedisplay
from identity.plugin_summaries import PluginSummary, find_directory_plugin
from identity.plugins.console.badges import Badge
from identity.plugins.console.console_page import DIRECTORIES_SECTION, ConsolePage
from identity.plugins.console.lists import Cells, ResourceList, list_route
from identity.plugins.console.page_sections import Descriptions
from identity.plugins.console.plugin_settings import settings_section
from identity.plugins.console.resource_pages import DetailPage, ResourcePages, Sections
from identity.plugins.console.resource_types import DIRECTORY, ORGANIZATION, EntityTitledPage
from identity.plugins.console.resources.attribute_mappings import DIRECTORY_ATTRIBUTE_MAPPINGS
from identity.plugins.console.resources.group_mappings import DIRECTORY_GROUP_MAPPINGS
from identity.provider.directory import DirectoryUnavailable
from identity.storage.paging import ResultPage


def _plugin(page: ConsolePage, directory: OrganizationDirectory) -> PluginSummary:
    plugins = page.request.registry.application.plugin_host.summarize_plugins()
    may = page.services.access_control.is_permitted(page.principal, "instance.read", Resource.INSTANCE)
    return find_directory_plugin(plugins, directory.name, with_paths=may)


def _rows(page: ConsolePage, directories: Sequence[OrganizationDirectory]) -> Sequence[Cells]:
    return [
        (
            page.template_macros.named(item.name, DIRECTORY.own_path(page, item), ""),
            _plugin(page, item).description,
        )
        for item in directories
    ]


#: A section of the navigation, of organizations that have a directory.
DIRECTORIES = ResourceList[OrganizationDirectory](
    path="/directories",
    permission="upstream_provider.read",
    section=DIRECTORIES_SECTION,
    title=_("Directories"),
    lead=_("Servers that know people's passwords. Only the ini file sets them up."),
    columns=(_("Directory"), _("Plugin")),
    is_searchable=False,
    has_state_filter=False,
    fetch=lambda page, request: ResultPage(
        page.services.directories.list_of_organization(page.entity_of(Organization))
    ),
    rows=_rows,
    empty_title=_("No directories"),
    empty_text=_("The ini file names the organization of each directory."),
)


def _descriptions(page: DetailPage[OrganizationDirectory], directory: OrganizationDirectory) -> Descriptions:
    return [(_("Managed by"), _("The instance, in the section {section} of the ini file", section="[app:main]"))]


def _sections(page: DetailPage[OrganizationDirectory], directory: OrganizationDirectory) -> Sections:
    return [
        page.list_section(DIRECTORY_GROUP_MAPPINGS),
        page.list_section(DIRECTORY_ATTRIBUTE_MAPPINGS),
        settings_section(page, _plugin(page, directory)),
    ]


_PAGES = ResourcePages(
    type=DIRECTORY,
    lead=lambda page, directory: [_("Directory"), _plugin(page, directory).description],
    badges=lambda page, directory: [Badge(page.translator.gettext("Instance"))],
    descriptions=_descriptions,
    sections=_sections,
    header=lambda page, directory: (
        [page.button_link(_("Test the connection"), f"{page.resource_path}/test")]
        if page.services.directories.can_control(directory, page.principal)
        else []
    ),
    is_editable=False,
)


class DirectoryTestPage(EntityTitledPage[OrganizationDirectory], FormPage):
    """The form has one button, which tests all servers."""

    template = "console/directory_test.html"
    title = _("Test the connection")
    #: What the test of this request found.
    results: Sequence[tuple[str, str]] = ()

    def early_response(self) -> Response | None:
        """Raises Denied for managers who do not control the directory."""
        self.services.directories.require_control(self.entity, self.principal)
        return super().early_response()

    def template_variables(self) -> Mapping[str, object]:
        return {"results": self.results, "lead": self.lead, "back": self.resource_path}

    def submit(self, form: Form) -> Response:
        self.services.directories.record_test(self.entity, principal=self.principal)
        directory = self.request.registry.application.protocol_registry.directories[self.entity.name]
        # Hold no lock while the servers answer.
        self.request.commit()
        try:
            self.results = tuple(directory.check_servers())
        except DirectoryUnavailable:
            raise FormRedisplay(_("Too many requests to the directory are running. Try again."), status=503) from None
        return self.get()


ROUTES = (
    list_route(DIRECTORIES, ORGANIZATION),
    *_PAGES.routes(),
    DIRECTORY.page_route("/test", DirectoryTestPage, INSTANCE_WRITE),
)
