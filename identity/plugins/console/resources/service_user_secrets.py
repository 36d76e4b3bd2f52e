"""Client secrets and personal access tokens of a service user, for programs that cannot sign."""

from collections.abc import Sequence

from pyramid.response import Response

from identity.domain.errors import Invalid, NotFound
from identity.domain.messages import gettext_lazy as _
from identity.domain.personal_access_tokens import PersonalAccessToken
from identity.domain.users import ServiceUser
from identity.pages.forms import Form
from identity.plugins.console.actions import Action, action_routes
from identity.plugins.console.client_secrets import ClientSecrets
from identity.plugins.console.console_page import ConsolePage, path_value
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
from identity.plugins.console.lists import Cells, ResourceList, list_route
from identity.plugins.console.resource_types import SERVICE_USER
from identity.services.commands.service_users import AddPersonalAccessToken
from identity.storage.paging import PageRequest, ResultPage

SECRETS = ClientSecrets(
    owner=SERVICE_USER,
    service=lambda services: services.service_users,
    section_id="secret",
    title=_("Client secret"),
    lead=_("Only for programs that use the client credentials grant; a key is safer."),
    empty=_("No client secret"),
    impact=_("Programs that use it lose access at once."),
)


def _rows(page: ConsolePage, tokens: Sequence[PersonalAccessToken]) -> Sequence[Cells]:
    path = f"{SERVICE_USER.path_of(page.entity_of(ServiceUser))}/personal-access-tokens"
    may_write = page.has_permission("service_user.write")
    return [
        (
            page.template_macros.bold(token.name),
            *expiration_cells(page, token),
            page.row_buttons(f"{path}/{token.id}", token.name, remove=_("Remove …"), change=False) if may_write else "",
        )
        for token in tokens
    ]


def _fetch(page: ConsolePage, request: PageRequest) -> ResultPage[PersonalAccessToken]:
    return page.services.service_users.page_personal_access_tokens(page.entity_of(ServiceUser).id, request)


PERSONAL_ACCESS_TOKENS = ResourceList(
    path="/personal-access-tokens",
    permission="service_user.read",
    title=_("Personal access tokens"),
    columns=(_("Name"), *EXPIRY_COLUMNS),
    has_row_buttons=True,
    is_searchable=False,
    fetch=_fetch,
    rows=_rows,
    empty_title=_("No personal access tokens yet"),
    empty_text=_("A program sends this token as it is. A key is safer because it never leaves the program."),
    create="service_user.write",
    entity_label=_("personal access token"),
    section_id="tokens",
    all_label=_("All personal access tokens …"),
    section_lead=_("Tokens that a program sends as they are, for tools that cannot ask for one."),
    section_empty=_("No personal access tokens"),
    is_created_from_section=True,
)


class PersonalAccessTokenCreatePage(CreateExpiringCredentialPage):
    """Creates a personal access token and shows it once."""

    back_path_suffix = "#tokens"

    form_fields = (
        *form_fields(PersonalAccessToken, PERSONAL_ACCESS_TOKEN_FIELDS),
        DateField(EXPIRATION_FIELD, _("Expiration date"), _("The token works until the end of this day (UTC).")),
        no_expiration_checkbox(_("Only for tokens that you replace in another way.")),
    )
    title = _("New personal access token for {name}")
    submit_label = _("Create token")

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
        users = self.services.service_users
        text = users.add_personal_access_token(self.entity.id, command, principal=self.principal)[1]
        return self.render_secret(_("Personal access token added"), text)


def _find_token(page: ConsolePage) -> PersonalAccessToken:
    """Raises NotFound."""
    token_id, user = path_value(page, "token"), page.entity_of(ServiceUser)
    token = page.services.storage.credentials.find(PersonalAccessToken, token_id, user.id)
    if token is None:
        raise NotFound("personal access token", token_id)
    return token


_TOKEN = SERVICE_USER.child(
    "/personal-access-tokens/{token}",
    PersonalAccessToken,
    message_values=lambda page, token: {"token": token.name, "name": page.entity_of(ServiceUser).display_name},
    find=_find_token,
)

_REMOVE = Action[PersonalAccessToken](
    path="/delete",
    run=lambda page, token: page.services.service_users.remove_personal_access_token(
        page.entity_of(ServiceUser).id, token.id, principal=page.principal
    ),
    done=lambda page, token: SERVICE_USER.path_of(page.entity_of(ServiceUser)),
    title=_("Remove the token “{token}” of {name}?"),
    impact=lambda page, token: [_("Programs that use it lose access at once."), last_used_label(token.last_used_at)],
    submit_label=_("Remove token"),
    back="#tokens",
)

ROUTES = (
    *SECRETS.routes(),
    list_route(PERSONAL_ACCESS_TOKENS, SERVICE_USER),
    SERVICE_USER.page_route("/personal-access-tokens/new", PersonalAccessTokenCreatePage, "write"),
    *action_routes(_TOKEN, _REMOVE),
)
