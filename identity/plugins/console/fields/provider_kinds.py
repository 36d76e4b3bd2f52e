"""Kinds of identity providers: what each asks for in words of its own, and where to register this service there."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any
from urllib.parse import urlsplit

from identity.domain.errors import Invalid
from identity.domain.messages import gettext_lazy as _
from identity.domain.upstream_providers import UpstreamKind, UpstreamProvider
from identity.pages.forms import FieldValue, Form
from identity.plugins.console.fields.upstream_providers import UPSTREAM_PROVIDER_FIELDS
from identity.plugins.console.form_fields import LITERAL_INPUT_ATTRIBUTES, FormField, TextArea, form_fields

_ISSUER = "issuer"
_ENTRA_PREFIX, _ENTRA_SUFFIX = "https://login.microsoftonline.com/", "/v2.0"
_REALMS = "/realms/"
_REQUIRED = _("This is required.")
_NEVER_COMPLETED: Mapping[str, object] = {"autocomplete": "new-password", "type": "password"}


@dataclass(frozen=True, kw_only=True)
class _IssuerField(FormField):
    """A part of the issuer that is enough for one kind of provider."""

    member_name: str = _ISSUER
    attributes: Mapping[str, object] = field(default_factory=lambda: dict(LITERAL_INPUT_ATTRIBUTES))

    def read(self, form: Form) -> str:
        return form.text(self.name).strip()


@dataclass(frozen=True, kw_only=True)
class HostField(_IssuerField):
    """A host; ``usual`` is that of the service that the provider's company runs."""

    usual: str = ""

    def format_value(self, value: Any) -> FieldValue:
        return str(value).removeprefix("https://") or self.usual

    def parse_value(self, form: Form) -> object:
        host = self.read(form).removeprefix("https://").rstrip("/")
        if not host or host == self.usual:
            return ""
        return host if "://" in host else f"https://{host}"


@dataclass(frozen=True, kw_only=True)
class TenantField(_IssuerField):
    """The id of a directory of Microsoft Entra."""

    def format_value(self, value: Any) -> FieldValue:
        return str(value).removeprefix(_ENTRA_PREFIX).removesuffix(_ENTRA_SUFFIX)

    def parse_value(self, form: Form) -> object:
        tenant = self.read(form).lower()
        return f"{_ENTRA_PREFIX}{tenant}{_ENTRA_SUFFIX}" if tenant else ""


@dataclass(frozen=True, kw_only=True)
class RealmField(_IssuerField):
    """A realm of Keycloak, which the address of the server completes."""

    def format_value(self, value: Any) -> FieldValue:
        return str(value).rpartition(_REALMS)[2]

    def is_submitted(self, form: Form) -> bool:
        """The other field reads it."""
        return False


@dataclass(frozen=True, kw_only=True)
class RealmServerField(_IssuerField):
    """The address of a Keycloak server; the issuer has the realm, too."""

    realm_name: str = "realm"

    def format_value(self, value: Any) -> FieldValue:
        return str(value).rpartition(_REALMS)[0]

    def parse_value(self, form: Form) -> object:
        url, realm = self.read(form).rstrip("/"), form.text(self.realm_name).strip()
        if not url or not realm:
            raise Invalid(
                {name: _REQUIRED for name, value in ((self.name, url), (self.realm_name, realm)) if not value}
            )
        return f"{url if '://' in url else f'https://{url}'}{_REALMS}{realm}"


_SECRET_HINT = _("The value itself, not its id. It is stored encrypted and never shown again.")

#: Never sent back to the browser.
SECRET_FIELD = FormField(
    "client_secret", _("Client secret"), _SECRET_HINT, required=False, attributes=dict(_NEVER_COMPLETED)
)
_APPLE_KEY_FIELD = TextArea(
    "client_secret",
    _("Private key"),
    _(
        "The content of the .p8 file, from BEGIN PRIVATE KEY to END PRIVATE KEY. It signs a short-lived client secret"
        " for each request."
    ),
    required=False,
    attributes={"rows": 4, "autocomplete": "off", "autocapitalize": "none", "spellcheck": "false"},
)


@dataclass(frozen=True, kw_only=True)
class ProviderKind:
    """``note`` and ``mark`` are for its tile, ``steps`` say how to register this service at ``url``. ``issuer_fields``
    replace the issuer; ``without`` are fields that make no sense for it. ``usual_name`` is the name of a new one."""

    kind: UpstreamKind
    note: str
    mark: str
    tone: str
    steps: tuple[str, ...]
    url: str = ""
    usual_name: str = ""
    issuer_fields: tuple[FormField, ...] = ()
    secret_field: FormField = SECRET_FIELD
    client_id_label: str = _("Client id")
    without: frozenset[str] = frozenset()
    needs_secret: bool = False

    @property
    def label(self) -> str:
        labels = UPSTREAM_PROVIDER_FIELDS["kind"].value_labels
        return str(labels[self.kind]) if self.kind is not UpstreamKind.OPENID else _("Any other")

    @property
    def host(self) -> str:
        return urlsplit(self.url).hostname or ""

    def form_fields(self) -> tuple[FormField, ...]:
        """The fields of its form, those that it needs before the others."""
        left_out = {"kind", _ISSUER, *self.without}
        labels = {name: label for name, label in UPSTREAM_PROVIDER_FIELDS.items() if name not in left_out}
        fields = {item.name: item for item in form_fields(UpstreamProvider, labels)}
        name, client_id = fields.pop("name"), replace(fields.pop("client_id"), label=self.client_id_label)
        apple = [replace(fields.pop(key), fieldset="", required=True) for key in ("team_id", "key_id") if key in fields]
        issuer = self.issuer_fields
        if self.kind is UpstreamKind.OPENID:
            issuer = form_fields(UpstreamProvider, {_ISSUER: UPSTREAM_PROVIDER_FIELDS[_ISSUER]})
        return (*issuer, client_id, *apple, self.secret_field, name, *fields.values())

    @property
    def value_names(self) -> frozenset[str]:
        """The fields whose values come from the provider."""
        return frozenset(
            {*(item.name for item in self.issuer_fields), _ISSUER, "client_id", "team_id", "key_id", "client_secret"}
        )


_APPLE_ONLY = frozenset({"team_id", "key_id"})

#: In the order of the tiles.
PROVIDER_KINDS: Mapping[UpstreamKind, ProviderKind] = {
    item.kind: item
    for item in (
        ProviderKind(
            kind=UpstreamKind.GOOGLE,
            note=_("Workspace or any account"),
            mark="G",
            tone="c",
            url="https://console.cloud.google.com/apis/credentials",
            usual_name="Google",
            steps=(
                _("Choose a project, then create an OAuth client ID of the type Web application."),
                _("Add the callback as an authorized redirect URI."),
                _("For your Workspace only, set the audience of the project to Internal."),
            ),
            without=_APPLE_ONLY,
        ),
        ProviderKind(
            kind=UpstreamKind.ENTRA,
            note=_("Work and school accounts"),
            mark="M",
            tone="",
            url="https://entra.microsoft.com/",
            usual_name="Microsoft",
            steps=(
                _("Open App registrations and choose New registration, for accounts in this directory only."),
                _("Add the callback as a redirect URI of the type Web."),
                _("Create a client secret under Certificates & secrets."),
                _(
                    "Under Token configuration, add the optional claims email and xms_edov: with them people come with"
                    " a verified address."
                ),
            ),
            issuer_fields=(
                TenantField(
                    name="tenant_id",
                    label=_("Directory (tenant) id"),
                    hint=_("On the page Overview of your registration."),
                    required_message=_REQUIRED,
                ),
            ),
            client_id_label=_("Application (client) id"),
            without=_APPLE_ONLY,
        ),
        ProviderKind(
            kind=UpstreamKind.GITHUB,
            note=_("github.com or Enterprise Server"),
            mark="gh",
            tone="d",
            url="https://github.com/settings/developers",
            usual_name="GitHub",
            steps=(
                _("Open Developer settings, OAuth Apps, and choose New OAuth app."),
                _("Enter the callback as the authorization callback URL."),
                _("Generate a client secret."),
            ),
            issuer_fields=(
                HostField(
                    name="host",
                    label=_("Host"),
                    hint=_("Change it for GitHub Enterprise Server only."),
                    required=False,
                    usual="github.com",
                ),
            ),
            without=_APPLE_ONLY | {"authentication", "sign_out_there", "identity_assertion_clients"},
            needs_secret=True,
        ),
        ProviderKind(
            kind=UpstreamKind.GITLAB,
            note=_("gitlab.com or your own"),
            mark="gl",
            tone="c",
            url="https://gitlab.com/-/user_settings/applications",
            usual_name="GitLab",
            steps=(
                _("Open Applications in the settings of your group or instance, and add an application."),
                _("Enter the callback as redirect URI, and leave Confidential on."),
                _("Select the scopes openid, profile and email."),
            ),
            issuer_fields=(
                HostField(
                    name="host",
                    label=_("Host"),
                    hint=_("Change it if you run GitLab yourself."),
                    required=False,
                    usual="gitlab.com",
                ),
            ),
            client_id_label=_("Application id"),
            without=_APPLE_ONLY,
        ),
        ProviderKind(
            kind=UpstreamKind.APPLE,
            note=_("Apple Account"),
            mark="A",
            tone="b",
            url="https://developer.apple.com/account/resources/identifiers/list/serviceId",
            usual_name="Apple",
            steps=(
                _("Create a Services ID, and turn on Sign in with Apple for it."),
                _("Configure it with the callback as a return URL."),
                _("Under Keys, create a key for Sign in with Apple, and download its .p8 file."),
            ),
            secret_field=_APPLE_KEY_FIELD,
            client_id_label=_("Services ID"),
            without=frozenset({"authentication", "sign_out_there"}),
            needs_secret=True,
        ),
        ProviderKind(
            kind=UpstreamKind.OKTA,
            note=_("Workforce or customers"),
            mark="O",
            tone="",
            usual_name="Okta",
            steps=(
                _("In the admin console, open Applications and create an app integration: OIDC, Web Application."),
                _("Add the callback as a sign-in redirect URI."),
                _("Assign the people who may sign in."),
            ),
            issuer_fields=(
                HostField(
                    name="domain",
                    label=_("Okta domain"),
                    hint=_(
                        "For example {example}. For a custom authorization server append its path, such as {path}.",
                        example="company.okta.com",
                        path="/oauth2/default",
                    ),
                    required_message=_REQUIRED,
                ),
            ),
            without=_APPLE_ONLY,
        ),
        ProviderKind(
            kind=UpstreamKind.KEYCLOAK,
            note=_("One realm"),
            mark="K",
            tone="b",
            usual_name="Keycloak",
            steps=(
                _("In the admin console, choose the realm and create a client of the type OpenID Connect."),
                _("Turn on Client authentication, and add the callback as a valid redirect URI."),
                _("The client secret is on the tab Credentials."),
            ),
            issuer_fields=(
                RealmField(name="realm", label=_("Realm"), required_message=_REQUIRED),
                RealmServerField(
                    name="base_url",
                    label=_("Server address"),
                    hint=_("For example {example}.", example="https://keycloak.example.com"),
                    required_message=_REQUIRED,
                ),
            ),
            without=_APPLE_ONLY,
        ),
        ProviderKind(
            kind=UpstreamKind.OPENID,
            note=_("OpenID Connect"),
            mark="id",
            tone="d",
            steps=(
                _("Register a web application there: a confidential client with the authorization code flow."),
                _("Add the callback as a redirect URI."),
            ),
            without=_APPLE_ONLY,
        ),
    )
}
