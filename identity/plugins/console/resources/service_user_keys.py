"""Keys of a service user: list, add with a key file that is shown once, remove."""

import base64
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta

from pyramid.response import Response

from identity.domain.deletion_impact import DeletionTarget
from identity.domain.errors import Invalid
from identity.domain.messages import gettext_lazy, ngettext_lazy
from identity.domain.service_user_keys import KeyFile, ServiceUserKey
from identity.domain.users import ServiceUser
from identity.http import route_contexts
from identity.pages.forms import Form
from identity.plugins.console.action_page import ActionPage
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
from identity.plugins.console.list_page import Cells, ListPage
from identity.plugins.console.resource_page import ServiceUserResourcePage
from identity.plugins.console.routes import ConsoleRoute
from identity.services.commands.service_users import AddServiceUserKey, UploadServiceUserKey
from identity.storage.paging import PageRequest, ResultPage

_SOURCE_FIELD, _PUBLIC_KEY_FIELD, _KEY_SIZE_FIELD = "source", "public_key", "key_size"
_GENERATE, _UPLOAD = "generate", "upload"
_SIZES = ("2048", "3072", "4096")
_MORE_LABEL = gettext_lazy("More")
_SIGNATURE_HINT = gettext_lazy("A program signs its assertion with the private key; we keep the public key only.")


class ServiceUserKeyListPage(ServiceUserResourcePage, ListPage):
    back_path_suffix = "/keys"

    columns = (gettext_lazy("Key id"), *EXPIRY_COLUMNS)
    has_row_buttons = True
    is_searchable = False
    title = gettext_lazy("Keys")
    empty_title = gettext_lazy("No keys yet")
    empty_text = _SIGNATURE_HINT
    section_lead = _SIGNATURE_HINT
    create_permission, entity_label = "service_user.write", gettext_lazy("key")
    section_id, all_link_label, is_primary_task, is_created_from_section = (
        "keys",
        gettext_lazy("All keys …"),
        True,
        True,
    )

    def fetch_page(self, page_request: PageRequest) -> ResultPage[ServiceUserKey]:
        return self.services.service_users.page_keys(self.entity.id, page_request)

    def build_cells(self, key: ServiceUserKey) -> Cells:
        href = f"{self.list_path}/{key.id}"
        remove = self.row_buttons(href, key.id, remove=gettext_lazy("Remove …"), change=False)
        return (
            self.template_macros.identifier(key.id),
            *expiration_cells(self, key),
            remove if self.has_permission(self.create_permission) else "",
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
            gettext_lazy("Expiration date"),
            gettext_lazy("The key works until the end of this day (UTC)."),
            max_lifetime=timedelta(days=3652),
            autofocus=True,
        ),
        no_expiration_checkbox(gettext_lazy("Only for keys that you replace by other means.")),
        RadioField(_SOURCE_FIELD, gettext_lazy("Key pair"), options=_source_options),
        TextArea(
            _PUBLIC_KEY_FIELD,
            gettext_lazy("Public key"),
            gettext_lazy("PEM, or a JWK. RSA with 2048 bits or more."),
            required=False,
            fieldset=_MORE_LABEL,
            attributes={"rows": 6, "spellcheck": "false", "autocomplete": "off"},
        ),
        SelectField(
            _KEY_SIZE_FIELD,
            gettext_lazy("Bits of a generated key"),
            options=lambda _: [(size, size) for size in _SIZES],
            fieldset=_MORE_LABEL,
        ),
    )
    disclosure_condition = (_SOURCE_FIELD, _UPLOAD)
    title = gettext_lazy("New key for {name}")
    submit_label = gettext_lazy("Add")

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
            raise Invalid({_PUBLIC_KEY_FIELD: gettext_lazy("Paste the public key: PEM, or a JWK.")})
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


class RemoveServiceUserKeyPage(ServiceUserResourcePage, ActionPage):
    back_path_suffix = "#keys"

    title = gettext_lazy("Remove the key {id} of {name}?")
    submit_label = gettext_lazy("Remove key")

    @property
    def key(self) -> ServiceUserKey:
        """Raises NotFound."""
        return self.services.service_users.get_key(self.entity.id, path_value(self, "key"))

    @property
    def message_values(self) -> Mapping[str, object]:
        return {"id": self.key.id, "name": self.entity_name}

    @property
    def impact(self) -> Sequence[str]:
        live = self.services.deletion_impact(DeletionTarget.KEY, self.key.id).live_tokens
        lost = gettext_lazy("Programs that use it lose access at once.")
        if live:
            lost = ngettext_lazy(
                "Programs that use it lose access at once: its {n} live token stops working.",
                "Programs that use it lose access at once: its {n} live tokens stop working.",
                live,
            )
        return [lost, last_used_label(self.key.last_used_at)]

    def perform(self) -> str:
        self.services.service_users.remove_key(self.entity.id, self.key.id, principal=self.principal)
        return self.resource_path


_ALL = "/service-users/{service_user}/keys"

ROUTES = (
    ConsoleRoute(_ALL, ServiceUserKeyListPage, "service_user.read", route_contexts.service_user_context),
    ConsoleRoute(f"{_ALL}/new", ServiceUserKeyCreatePage, "service_user.write", route_contexts.service_user_context),
    ConsoleRoute(
        f"{_ALL}/{{key}}/delete", RemoveServiceUserKeyPage, "service_user.write", route_contexts.service_user_context
    ),
)
