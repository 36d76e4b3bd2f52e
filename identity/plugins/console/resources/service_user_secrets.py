"""Client secrets and personal access tokens of a service user, for programs that cannot sign."""

from collections.abc import Mapping, Sequence

from pyramid.response import Response

from identity.domain.errors import Invalid, NotFound
from identity.domain.messages import gettext_lazy
from identity.domain.personal_access_tokens import PersonalAccessToken
from identity.http import route_contexts
from identity.pages.forms import Form
from identity.plugins.console.action_page import ActionPage
from identity.plugins.console.client_secrets import client_secret_routes, client_secret_section
from identity.plugins.console.console_page import path_value
from identity.plugins.console.expiring_credentials import (
    ALREADY_CREATED_MESSAGE,
    EXPIRATION_FIELD,
    EXPIRY_COLUMNS,
    CreateExpiringCredentialPage,
    DateField,
    expiration_cells,
    last_used_label,
    no_expiration_checkbox,
    parse_expiration,
)
from identity.plugins.console.fields.personal_access_tokens import PERSONAL_ACCESS_TOKEN_FIELDS
from identity.plugins.console.form_fields import form_fields
from identity.plugins.console.list_page import Cells, ListPage
from identity.plugins.console.page_sections import TableSection
from identity.plugins.console.resource_page import ServiceUserResourcePage
from identity.plugins.console.routes import ConsoleRoute
from identity.services.commands.service_users import AddPersonalAccessToken
from identity.storage.paging import PageRequest, ResultPage


def service_user_secret_section(page: ServiceUserResourcePage) -> TableSection:
    lead = gettext_lazy("Only for programs that use the client credentials grant; a key is safer.")
    empty = gettext_lazy("No client secret")
    return client_secret_section(page, "secret", gettext_lazy("Client secret"), lead, empty=empty, first=False)


class PersonalAccessTokenListPage(ServiceUserResourcePage, ListPage):
    back_path_suffix = "/personal-access-tokens"

    columns = (gettext_lazy("Name"), *EXPIRY_COLUMNS)
    has_row_buttons = True
    is_searchable = False
    title = gettext_lazy("Personal access tokens")
    empty_title = gettext_lazy("No personal access tokens yet")
    empty_text = gettext_lazy("A program sends such a token as it is. A key is safer: it never leaves the program.")
    create_permission, entity_label = "service_user.write", gettext_lazy("personal access token")
    section_id, all_link_label, is_created_from_section = "tokens", gettext_lazy("All personal access tokens …"), True
    section_lead = gettext_lazy("Tokens that a program sends as they are, for tools that cannot ask for one.")
    section_empty = gettext_lazy("No personal access tokens")

    def fetch_page(self, page_request: PageRequest) -> ResultPage[PersonalAccessToken]:
        return self.services.service_users.page_personal_access_tokens(self.entity.id, page_request)

    def build_cells(self, token: PersonalAccessToken) -> Cells:
        remove = self.row_buttons(
            f"{self.list_path}/{token.id}", token.name, remove=gettext_lazy("Remove …"), change=False
        )
        return (
            self.template_macros.bold(token.name),
            *expiration_cells(self, token),
            remove if self.has_permission(self.create_permission) else "",
        )


class PersonalAccessTokenCreatePage(CreateExpiringCredentialPage):
    """Creates a personal access token and shows it once."""

    back_path_suffix = "#tokens"

    form_fields = (
        *form_fields(PersonalAccessToken, PERSONAL_ACCESS_TOKEN_FIELDS),
        DateField(
            EXPIRATION_FIELD,
            gettext_lazy("Expiration date"),
            gettext_lazy("The token works until the end of this day (UTC)."),
        ),
        no_expiration_checkbox(gettext_lazy("Only for tokens that you replace by other means.")),
    )
    title = gettext_lazy("New personal access token for {name}")
    submit_label = gettext_lazy("Create token")

    def submit(self, form: Form) -> Response:
        problems: dict[str, str] = {}
        expires_at = None
        try:
            expires_at = parse_expiration(form)
        except Invalid as refused:
            problems |= refused.fields
        try:
            command = self.decode_command(AddPersonalAccessToken, {"name": form.text("name"), "expires_at": expires_at})
        except Invalid as refused:
            raise Invalid({**refused.fields, **problems}) from None
        if problems:
            raise Invalid(problems)
        self.redeem_submission_id(form, ALREADY_CREATED_MESSAGE)
        _, text = self.services.service_users.add_personal_access_token(
            self.entity.id, command, principal=self.principal
        )
        variables = {"client_id": "", "secret": text, "back": self.cancel_path}
        added = self.translator.gettext("Personal access token added")
        return self.render({**variables, "title": added}, template="console/client_secret_created.html")


class RevokePersonalAccessTokenPage(ServiceUserResourcePage, ActionPage):
    back_path_suffix = "#tokens"

    title = gettext_lazy("Remove the token “{token}” of {name}?")
    submit_label = gettext_lazy("Remove token")

    @property
    def token(self) -> PersonalAccessToken:
        """Raises NotFound."""
        token_id = path_value(self, "token")
        personal_access_token = self.services.storage.credentials.find(PersonalAccessToken, token_id, self.entity.id)
        if personal_access_token is None:
            raise NotFound("personal access token", token_id)
        token: PersonalAccessToken = personal_access_token
        return token

    @property
    def message_values(self) -> Mapping[str, object]:
        return {"token": self.token.name, "name": self.entity_name}

    @property
    def impact(self) -> Sequence[str]:
        return [gettext_lazy("Programs that use it lose access at once."), last_used_label(self.token.last_used_at)]

    def perform(self) -> str:
        self.services.service_users.remove_personal_access_token(
            self.entity.id, self.token.id, principal=self.principal
        )
        return self.resource_path


_SERVICE_USER_PATH = "/service-users/{service_user}"

ROUTES = (
    *client_secret_routes(
        ServiceUserResourcePage,
        anchor="secret",
        impact_message=gettext_lazy("Programs that use it lose access at once."),
    ),
    ConsoleRoute(
        f"{_SERVICE_USER_PATH}/personal-access-tokens",
        PersonalAccessTokenListPage,
        "service_user.read",
        route_contexts.service_user_context,
    ),
    ConsoleRoute(
        f"{_SERVICE_USER_PATH}/personal-access-tokens/new",
        PersonalAccessTokenCreatePage,
        "service_user.write",
        route_contexts.service_user_context,
    ),
    ConsoleRoute(
        f"{_SERVICE_USER_PATH}/personal-access-tokens/{{token}}/delete",
        RevokePersonalAccessTokenPage,
        "service_user.write",
        route_contexts.service_user_context,
    ),
)
