"""Keys of a service user: list, add with a key file that is shown once, remove."""

import base64
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta

from pyramid.response import Response

from identity.domain.deletion_impact import DeletionTarget
from identity.domain.errors import Invalid
from identity.domain.messages import gettext_lazy as _
from identity.domain.messages import ngettext_lazy
from identity.domain.service_user_keys import KeyFile, ServiceUserKey
from identity.domain.users import ServiceUser
from identity.pages.forms import Form
from identity.plugins.console.actions import Action, action_routes
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
from identity.plugins.console.form_fields import RadioField, SelectField, TextArea
from identity.plugins.console.lists import Cells, ResourceList, list_route
from identity.plugins.console.resource_types import SERVICE_USER
from identity.services.commands.service_users import AddServiceUserKey, UploadServiceUserKey

_SOURCE_FIELD, _PUBLIC_KEY_FIELD, _KEY_SIZE_FIELD = "source", "public_key", "key_size"
_GENERATE, _UPLOAD = "generate", "upload"
_SIZES = ("2048", "3072", "4096")
_MORE_LABEL = _("More")
_SIGNATURE_HINT = _("A program signs its assertion with the private key; we keep the public key only.")


def _rows(page: ConsolePage, keys: Sequence[ServiceUserKey]) -> Sequence[Cells]:
    path = f"{SERVICE_USER.path_of(page.entity_of(ServiceUser))}/keys"
    may_write = page.has_permission("service_user.write")
    return [
        (
            page.template_macros.identifier(key.id),
            *expiration_cells(page, key),
            page.row_buttons(f"{path}/{key.id}", key.id, remove=_("Remove …"), change=False) if may_write else "",
        )
        for key in keys
    ]


KEYS = ResourceList(
    path="/keys",
    permission="service_user.read",
    title=_("Keys"),
    columns=(_("Key id"), *EXPIRY_COLUMNS),
    has_row_buttons=True,
    is_searchable=False,
    fetch=lambda page, request: page.services.service_users.page_keys(page.entity_of(ServiceUser).id, request),
    rows=_rows,
    empty_title=_("No keys yet"),
    empty_text=_SIGNATURE_HINT,
    create="service_user.write",
    entity_label=_("key"),
    section_id="keys",
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


class ServiceUserKeyCreatePage(CreateExpiringCredentialPage):
    """Adds a key and shows the key file once (service description §2.2)."""

    form_fields = (
        DateField(
            EXPIRATION_FIELD,
            _("Expiration date"),
            _("The key works until the end of this day (UTC)."),
            max_lifetime=timedelta(days=3652),
            autofocus=True,
        ),
        no_expiration_checkbox(_("Only for keys that you replace in another way.")),
        RadioField(_SOURCE_FIELD, _("Key pair"), options=_source_options),
        TextArea(
            _PUBLIC_KEY_FIELD,
            _("Public key"),
            _("PEM, or a JWK. RSA with 2048 bits or more."),
            required=False,
            fieldset=_MORE_LABEL,
            attributes={"rows": 6, "spellcheck": "false", "autocomplete": "off"},
        ),
        SelectField(
            _KEY_SIZE_FIELD,
            _("Bits of a generated key"),
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
        expires_at = parse_expiration(form)
        self.redeem_submission_id(form, ALREADY_CREATED_MESSAGE)
        if form.text(_SOURCE_FIELD) == _UPLOAD:
            self._upload(form, expires_at)
            return self.redirect(self.path_with_flash(f"{self.resource_path}#keys"))
        size = form.text(_KEY_SIZE_FIELD) or _SIZES[0]
        command = self.decode_command(AddServiceUserKey, {"expires_at": expires_at, "key_size": _parse_size(size)})
        file = self.services.service_users.add_key(self.entity.id, command, principal=self.principal)
        variables = {**_key_file_variables(file, self.entity), "back": self.resource_path}
        return self.render(variables, template="console/service_user_key_created.html")

    def _upload(self, form: Form, expires_at: datetime) -> None:
        text = form.text(_PUBLIC_KEY_FIELD)
        if not text:
            raise Invalid({_PUBLIC_KEY_FIELD: _("Paste the public key: PEM, or a JWK.")})
        command = self.decode_command(UploadServiceUserKey, {"public_key": text, "expires_at": expires_at})
        self.services.service_users.upload_key(self.entity.id, command, principal=self.principal)


def _parse_size(text: str) -> object:
    return int(text) if text.isascii() and text.isdecimal() and len(text) < 9 else text


def _key_file_variables(file: KeyFile, user: ServiceUser) -> dict[str, object]:
    """Variables of the key file's page: name, content, and a data URI to download it without a script."""
    content = file.to_json()
    return {
        "content": content,
        "filename": f"{user.user_name}-{file.key_id[:8]}.json",
        "file": "data:application/json;base64," + base64.b64encode(content.encode()).decode(),
    }


_KEY = SERVICE_USER.child(
    "/keys/{key}",
    ServiceUserKey,
    message_values=lambda page, key: {"id": key.id, "name": page.entity_of(ServiceUser).display_name},
    find=lambda page: page.services.service_users.get_key(page.entity_of(ServiceUser).id, path_value(page, "key")),
)


def _removal_impact(page: ConsolePage, key: ServiceUserKey) -> Sequence[str]:
    live = page.services.deletion_impact(DeletionTarget.KEY, key.id).live_tokens
    lost = _("Programs that use it lose access at once.")
    if live:
        lost = ngettext_lazy(
            "Programs that use it lose access at once: its {n} live token stops working.",
            "Programs that use it lose access at once: its {n} live tokens stop working.",
            live,
        )
    return [lost, last_used_label(key.last_used_at)]


_REMOVE = Action[ServiceUserKey](
    path="/delete",
    run=lambda page, key: page.services.service_users.remove_key(
        page.entity_of(ServiceUser).id, key.id, principal=page.principal
    ),
    done=lambda page, key: SERVICE_USER.path_of(page.entity_of(ServiceUser)),
    title=_("Remove the key {id} of {name}?"),
    impact=_removal_impact,
    submit_label=_("Remove key"),
    back="#keys",
)

ROUTES = (
    list_route(KEYS, SERVICE_USER),
    SERVICE_USER.page_route("/keys/new", ServiceUserKeyCreatePage, "write"),
    *action_routes(_KEY, _REMOVE),
)
