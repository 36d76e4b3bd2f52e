"""Keys, secrets and personal access tokens of a service user. Secret parts are shown once."""

import base64
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta

from pyramid.response import Response

from identity.domain.deletion_impact import DeletionTarget
from identity.domain.errors import Invalid, NotFound
from identity.domain.expirations import NEVER
from identity.domain.messages import gettext_lazy as _
from identity.domain.messages import ngettext_lazy
from identity.domain.personal_access_tokens import PersonalAccessToken
from identity.domain.service_user_keys import ServiceUserKey
from identity.domain.signature_algorithms import SignatureAlgorithm
from identity.domain.users import Agent, ServiceUser
from identity.pages.forms import Form
from identity.plugins.console.actions import Action, action_routes
from identity.plugins.console.badges import expiry_badge
from identity.plugins.console.client_secrets import ALREADY_CREATED_MESSAGE, ClientSecrets, last_used_label
from identity.plugins.console.console_page import ConsolePage, path_value
from identity.plugins.console.fields.personal_access_tokens import PERSONAL_ACCESS_TOKEN_FIELDS
from identity.plugins.console.form_fields import Checkbox, FormField, RadioField, SelectField, TextArea, form_fields
from identity.plugins.console.form_page import ConsoleFormPage
from identity.plugins.console.lists import Cells, ResourceList, list_route
from identity.plugins.console.resource_types import SERVICE_USER, ResourcePage
from identity.services.commands.service_users import (
    AddPersonalAccessToken,
    AddServiceUserKey,
    UploadServiceUserKey,
)

_EXPIRATION_FIELD, _NO_EXPIRATION_FIELD = "expiration_date", "no_expiration"

#: Columns after the name.
_EXPIRY_COLUMNS = (_("Expiration date"), _("State"), _("Last used"))


def _cells(
    page: ConsolePage, name: object, credential: ServiceUserKey | PersonalAccessToken, path: str, label: str
) -> Cells:
    badge = expiry_badge(credential.expires_at, page.services.now, page.translator)
    path = f"{SERVICE_USER.path_of(page.entity_of(ServiceUser))}{path}/{credential.id}"
    may_write = page.has_permission("service_user.write")
    return (
        name,
        page.template_macros.until(credential),
        page.render_badge(badge),
        page.relative_time(credential.last_used_at),
        page.row_buttons(path, label, remove=_("Remove …"), change=False) if may_write else "",
    )


@dataclass(frozen=True, kw_only=True)
class DateField(FormField):
    """A date from tomorrow to the longest lifetime that the service allows."""

    macro = "date_field"

    #: Forms take a date, commands a moment.
    member_name: str = "expires_at"
    #: The longest suggested lifetime; the service enforces its own limit.
    max_lifetime: timedelta | None = None

    def macro_arguments(self, page: ConsolePage) -> dict[str, object]:
        today: date = page.services.now.date()
        days = [] if self.max_lifetime is None else [today + self.max_lifetime]
        if page.services.service_users.max_expiration is not None:
            days.append(_last_expiration_date(page.services.service_users.max_expiration))
        suggestions = (
            (timedelta(days=30), _("in 30 days")),
            (timedelta(days=90), _("in 90 days")),
            (timedelta(days=365), _("in 1 year")),
        )
        return {
            "hint": page.translate(self.hint),
            "autofocus": self.autofocus,
            "min": str(today + timedelta(days=1)),
            "max": str(min(days)) if days else None,
            "suggestions": [(str(today + span), page.translate(message)) for span, message in suggestions],
        }


def _no_expiration_checkbox(hint: str) -> FormField:
    return Checkbox(name=_NO_EXPIRATION_FIELD, label=_("No expiration date"), hint=hint)


class CreateExpiringCredentialPage(ResourcePage[ServiceUser], ConsoleFormPage):
    """Creates a credential with an expiration date. Without expiration only if the service sets no maximum lifetime."""

    is_creation = True

    def visible_fields(self) -> Sequence[FormField]:
        limited = self.services.service_users.max_expiration is not None
        return [field for field in self.form_fields if not (limited and field.name == _NO_EXPIRATION_FIELD)]

    def initial_values(self) -> Mapping[str, str]:
        users = self.services.service_users
        day, latest = users.default_expiration.date(), users.max_expiration
        return {_EXPIRATION_FIELD: str(day if latest is None else min(day, _last_expiration_date(latest)))}


def _parse_expiration(form: Form) -> datetime:
    """The end of the chosen day (UTC); NEVER without expiration. Raises Invalid."""
    text = form.text(_EXPIRATION_FIELD)
    if form.text(_NO_EXPIRATION_FIELD):
        return NEVER
    if not text:
        raise Invalid({_EXPIRATION_FIELD: _("Choose an expiration date, or tick “No expiration date”.")})
    try:
        day = date.fromisoformat(text)
    except ValueError:
        raise Invalid({_EXPIRATION_FIELD: _("Enter a date such as 2027-12-31.")}) from None
    return datetime.combine(day, time(23, 59, 59), UTC)


def _last_expiration_date(latest: datetime) -> date:
    """The last date whose end is not after ``latest`` (UTC)."""
    return (latest + timedelta(seconds=1)).date() - timedelta(days=1)


_SOURCE_FIELD, _PUBLIC_KEY_FIELD, _KEY_SIZE_FIELD, _ALGORITHM_FIELD = "source", "public_key", "key_size", "algorithm"
_GENERATE, _UPLOAD = "generate", "upload"
_SIZES = ("2048", "3072", "4096")
_MORE_LABEL = _("More")
_SIGNATURE_HINT = _("A program signs its assertion with the private key; we keep the public key only.")


KEYS = ResourceList(
    path="/keys",
    permission="service_user.read",
    title=_("Keys"),
    columns=(_("Key id"), *_EXPIRY_COLUMNS),
    has_row_buttons=True,
    is_searchable=False,
    fetch=lambda page, request: page.services.service_users.page_keys(page.entity_of(ServiceUser).id, request),
    rows=lambda page, keys: [
        _cells(page, page.template_macros.key_identifier(key), key, "/keys", key.id) for key in keys
    ],
    empty_title=_("No keys yet"),
    empty_text=_SIGNATURE_HINT,
    create="service_user.write",
    can_create=lambda page: not isinstance(page.entity_of(ServiceUser), Agent),
    entity_label=_("key"),
    all_label=_("All keys …"),
    section_lead=_SIGNATURE_HINT,
    is_created_from_section=True,
    is_primary_task=True,
)


def _source_options(page: ConsolePage) -> Sequence[Sequence[object]]:
    t = page.translator.gettext
    return [
        (_GENERATE, t("Generate a key pair and download the key file once"), ""),
        (_UPLOAD, t("Use my own public key"), t("Paste it below. The private key stays with you.")),
    ]


def _algorithm_options(page: ConsolePage) -> Sequence[tuple[str, str]]:
    by_type = page.translate(_("By the type of key, for RSA keys RS256"))
    return [("", by_type), *((algorithm.value, algorithm.value) for algorithm in SignatureAlgorithm)]


class ServiceUserKeyCreatePage(CreateExpiringCredentialPage):
    """Adds a key and shows the key file once (service description §2.2)."""

    form_fields = (
        DateField(
            _EXPIRATION_FIELD,
            _("Expiration date"),
            _("The key works until the end of this day (UTC)."),
            max_lifetime=timedelta(days=3652),
            autofocus=True,
        ),
        _no_expiration_checkbox(_("Only for keys that you replace in another way.")),
        RadioField(_SOURCE_FIELD, _("Key pair"), options=_source_options),
        TextArea(
            _PUBLIC_KEY_FIELD,
            _("Public key"),
            _("PEM, or a JWK. RSA with 2048 bits or more, P-256 or Ed25519."),
            required=False,
            fieldset=_MORE_LABEL,
            attributes={"rows": 6, "spellcheck": "false", "autocomplete": "off"},
        ),
        SelectField(
            _ALGORITHM_FIELD,
            _("Algorithm"),
            _("The program must sign with it."),
            options=_algorithm_options,
            fieldset=_MORE_LABEL,
        ),
        SelectField(
            _KEY_SIZE_FIELD,
            _("Bits of a generated RSA key"),
            options=lambda _: [(size, size) for size in _SIZES],
            fieldset=_MORE_LABEL,
        ),
    )
    disclosure_condition = (_SOURCE_FIELD, _UPLOAD)
    title = _("New key for {name}")
    submit_label = _("Add")

    def initial_values(self) -> Mapping[str, str]:
        return {**super().initial_values(), _SOURCE_FIELD: _GENERATE, _KEY_SIZE_FIELD: _SIZES[0]}

    def submit(self, form: Form) -> Response:
        """Add it. The private key is in this response only, so there is no redirect."""
        expires_at = _parse_expiration(form)
        self.redeem_submission_id(form, ALREADY_CREATED_MESSAGE)
        if form.text(_SOURCE_FIELD) == _UPLOAD:
            self._upload(form, expires_at)
            return self.redirect(self.path_with_flash(f"{self.resource_path}#keys"))
        size = form.text(_KEY_SIZE_FIELD) or _SIZES[0]
        command = self.decode_command(
            AddServiceUserKey,
            {"expires_at": expires_at, "key_size": _parse_size(size), "algorithm": form.text(_ALGORITHM_FIELD) or None},
        )
        file = self.services.service_users.add_key(self.entity.id, command, principal=self.principal)
        content = file.to_json()
        variables = {
            "content": content,
            "filename": f"{self.entity.user_name}-{file.key_id[:8]}.json",
            # To download it without a script.
            "file": "data:application/json;base64," + base64.b64encode(content.encode()).decode(),
            "back": self.resource_path,
        }
        return self.render(variables, template="console/service_user_key_created.html")

    def _upload(self, form: Form, expires_at: datetime) -> None:
        text = form.text(_PUBLIC_KEY_FIELD)
        if not text:
            raise Invalid({_PUBLIC_KEY_FIELD: _("Paste the public key: PEM, or a JWK.")})
        command = self.decode_command(
            UploadServiceUserKey,
            {"public_key": text, "expires_at": expires_at, "algorithm": form.text(_ALGORITHM_FIELD) or None},
        )
        self.services.service_users.upload_key(self.entity.id, command, principal=self.principal)


def _parse_size(text: str) -> object:
    return int(text) if text.isascii() and text.isdecimal() and len(text) < 9 else text


_KEY = SERVICE_USER.child(
    "/keys/{key}",
    ServiceUserKey,
    message_values=lambda page, key: {"id": key.id, "name": page.entity_of(ServiceUser).display_name},
    find=lambda page: page.services.service_users.get_key(page.entity_of(ServiceUser).id, path_value(page, "key")),
)


def _key_removal_impact(page: ConsolePage, key: ServiceUserKey) -> Sequence[str]:
    live = page.services.deletion_impact(DeletionTarget.KEY, key.id).live_tokens
    lost = _("Programs that use it lose access at once.")
    if live:
        lost = ngettext_lazy(
            "Programs that use it lose access at once: its {n} live token stops working.",
            "Programs that use it lose access at once: its {n} live tokens stop working.",
            live,
        )
    return [lost, last_used_label(key.last_used_at)]


_REMOVE_KEY = Action[ServiceUserKey](
    path="/delete",
    run=lambda page, key: page.services.service_users.remove_key(
        page.entity_of(ServiceUser).id, key.id, principal=page.principal
    ),
    done=lambda page, key: SERVICE_USER.path_of(page.entity_of(ServiceUser)),
    title=_("Remove the key {id} of {name}?"),
    impact=_key_removal_impact,
    submit_label=_("Remove key"),
    back="#keys",
)

SECRETS = ClientSecrets(
    owner=SERVICE_USER,
    service=lambda services: services.service_users,
    section_id="secret",
    title=_("Client secret"),
    lead=_("Only for programs that use the client credentials grant; a key is safer."),
    empty=_("No client secret"),
    impact=_("Programs that use it lose access at once."),
)


PERSONAL_ACCESS_TOKENS = ResourceList(
    path="/personal-access-tokens",
    permission="service_user.read",
    title=_("Personal access tokens"),
    columns=(_("Name"), *_EXPIRY_COLUMNS),
    has_row_buttons=True,
    is_searchable=False,
    fetch=lambda page, request: page.services.service_users.page_personal_access_tokens(
        page.entity_of(ServiceUser).id, request
    ),
    rows=lambda page, tokens: [
        _cells(page, page.template_macros.bold(token.name), token, "/personal-access-tokens", token.name)
        for token in tokens
    ],
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
        DateField(_EXPIRATION_FIELD, _("Expiration date"), _("The token works until the end of this day (UTC).")),
        _no_expiration_checkbox(_("Only for tokens that you replace in another way.")),
    )
    title = _("New personal access token for {name}")
    submit_label = _("Create token")

    def submit(self, form: Form) -> Response:
        problems: dict[str, str] = {}
        expires_at = None
        try:
            expires_at = _parse_expiration(form)
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

_REMOVE_TOKEN = Action[PersonalAccessToken](
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
    list_route(KEYS, SERVICE_USER),
    SERVICE_USER.page_route("/keys/new", ServiceUserKeyCreatePage, "write"),
    *action_routes(_KEY, _REMOVE_KEY),
    *SECRETS.routes(),
    list_route(PERSONAL_ACCESS_TOKENS, SERVICE_USER),
    SERVICE_USER.page_route("/personal-access-tokens/new", PersonalAccessTokenCreatePage, "write"),
    *action_routes(_TOKEN, _REMOVE_TOKEN),
)
