"""The tab Connect of applications and service users: code for a framework, with the real ids and addresses."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any
from urllib.parse import urlencode, urlsplit

from identity.api.plugins import cached_property
from identity.domain.applications import Application, redirect_uri_error
from identity.domain.messages import gettext_lazy as _
from identity.domain.users import ServiceUser
from identity.http.sector_identifiers import read_sector_list
from identity.plugins.console.actions import Action
from identity.plugins.console.console_page import ConsolePage
from identity.plugins.console.resource_pages import DetailPage
from identity.plugins.console.resource_types import EntityT, ResourcePage
from identity.plugins.console.snippets import (
    SERVICE_USER_FRAMEWORKS,
    Framework,
    application_frameworks,
    application_values,
    choose_framework,
    commands,
    render_files,
    service_values,
)
from identity.services.commands.applications import ChangeApplication

CONNECT_PATH = "/connect"
ADDRESSES_PATH = f"{CONNECT_PATH}/addresses"
#: Query parameters: the framework, and where the application runs.
FRAMEWORK_PARAM, ORIGIN_PARAM = "with", "at"
_MAX_ORIGIN_LENGTH = 300
#: The authentication methods of the snippets.
_SNIPPET_METHODS = ("client_secret_basic", "client_secret_post", "none")
#: That of the client kit, if nothing else is said.
_DEFAULT_NAMESPACE = "urn:service:iam"


class ConnectPage(DetailPage[EntityT]):
    template = "console/connect.html"

    @property
    def frameworks(self) -> Sequence[Framework]:
        raise NotImplementedError

    @cached_property
    def framework(self) -> Framework:
        return choose_framework(self.frameworks, self.request.GET.get(FRAMEWORK_PARAM, ""))

    @property
    def origin(self) -> str:
        """Where the application runs, if it was named."""
        return ""

    def template_variables(self) -> Mapping[str, object]:
        framework, path = self.framework, f"{self.resource_path}{CONNECT_PATH}"
        settings = self.request.registry.application.settings
        values = service_values(
            settings.issuer_url,
            settings.urn_namespaces[0],
            _DEFAULT_NAMESPACE,
            self.discovery_document,
        )
        files = render_files(self.renderer.text_environment, framework, {**values, **self.snippet_values()})
        return {
            **super().template_variables(),
            "frameworks": [
                (option.label, f"{path}?{urlencode(self._query(option))}", option is framework)
                for option in self.frameworks
            ],
            "framework": framework,
            "files": files,
            "commands": commands(framework, self.application, self.origin),
            "path": path,
            "addresses": (),
            "missing": 0,
            "unsupported": "",
            "federated_href": self.federated_href,
            "needs_secret": False,
            "needs_key": False,
        }

    @property
    def application(self) -> Application | None:
        return None

    @property
    def federated_href(self) -> str:
        """Where to trust the tokens that the framework's platform issues; empty if it issues none."""
        return ""

    def snippet_values(self) -> Mapping[str, object]:
        return {}

    def _query(self, framework: Framework) -> dict[str, str]:
        return {FRAMEWORK_PARAM: framework.key}


class ConnectServiceUserPage(ConnectPage[ServiceUser]):
    frameworks = SERVICE_USER_FRAMEWORKS

    def template_variables(self) -> Mapping[str, object]:
        keys = self.services.storage.credentials.key_summaries([self.entity.id], self.services.now)
        return {
            **super().template_variables(),
            "needs_key": self.entity.id not in keys,
            "key_href": f"{self.resource_path}/keys/new",
        }


class ConnectApplicationPage(ConnectPage[Application]):
    @property
    def application(self) -> Application:
        return self.entity

    @property
    def frameworks(self) -> Sequence[Framework]:
        return application_frameworks(self.entity)

    @cached_property
    def origin(self) -> str:
        return chosen_origin(self, self.entity, self.framework)

    def template_variables(self) -> Mapping[str, object]:
        application, framework = self.entity, self.framework
        addresses = needed_addresses(application, framework, self.origin)
        secrets = len(self.services.applications.list_secrets(application.id)) if application.uses_client_secret else 1
        typed = self.request.GET.get(ORIGIN_PARAM, "")
        query = {**self._query(framework), **({ORIGIN_PARAM: self.origin} if self.origin else {})}
        return {
            **super().template_variables(),
            "addresses": addresses,
            "addresses_action": f"{self.resource_path}{ADDRESSES_PATH}?{urlencode(query)}",
            "can_add": self.has_permission("application.write"),
            "missing": sum(not is_registered for _label, _uri, is_registered in addresses),
            "origin": self.origin or typed or framework.origin,
            "origin_error": bool(typed) and not self.origin,
            "framework_param": FRAMEWORK_PARAM,
            "origin_param": ORIGIN_PARAM,
            "unsupported": ", ".join(_missing_in_snippets(application, self.services.capabilities.sender_constraints)),
            "needs_secret": secrets == 0,
            "secret_href": f"{self.resource_path}/secrets/new",
        }

    def snippet_values(self) -> Mapping[str, object]:
        return application_values(self.entity, self.framework, self.origin)

    def _query(self, framework: Framework) -> dict[str, str]:
        # Each framework has its own port during development; an address on the network is that of all of them.
        return {FRAMEWORK_PARAM: framework.key, **({ORIGIN_PARAM: self.origin} if self.origin else {})}


def _missing_in_snippets(application: Application, sender_constraints: Sequence[str]) -> Iterator[str]:
    """What the application has to do and the snippets do not."""
    if application.authentication_method not in _SNIPPET_METHODS:
        yield application.authentication_method
    if application.needs_pushed_request:
        yield "PAR"
    if application.needs_signed_request:
        yield "JAR"
    if application.needs_encoded_response:
        yield "JARM"
    if application.needs_bound_tokens:
        yield application.required_sender_constraint or " / ".join(sender_constraints)


def chosen_origin(page: ResourcePage[Application], application: Application, framework: Framework) -> str:
    """Where the application runs, by the query: scheme, host and port. Empty if it is not named, or no such address."""
    typed = page.request.GET.get(ORIGIN_PARAM, "").strip().rstrip("/")
    if not typed or not framework.origin or len(typed) > _MAX_ORIGIN_LENGTH:
        return ""
    error = redirect_uri_error(typed, type=application.type, development=application.development)
    if error is not None or not typed.isprintable() or any(sign in typed for sign in "\"'`$<>;&|(){}?%"):
        return ""
    parts = urlsplit(typed)
    return typed if parts.scheme in ("http", "https") and not parts.path else ""


def needed_addresses(application: Application, framework: Framework, origin: str) -> list[tuple[str, str, bool]]:
    """Label and URI of each address that the snippet needs, and whether it is registered."""
    redirect_uri, post_logout_uri = framework.redirect_uri(origin), framework.post_logout_uri(origin)
    addresses = [
        (_("Redirect URI"), redirect_uri, application.has_redirect_uri(redirect_uri)),
        (_("Post-logout redirect URI"), post_logout_uri, post_logout_uri in application.post_logout_redirect_uris),
    ]
    return [address for address in addresses if address[1]]


def _chosen(page: ResourcePage[Application], application: Application) -> tuple[Framework, str]:
    framework = choose_framework(application_frameworks(application), page.request.GET.get(FRAMEWORK_PARAM, ""))
    return framework, chosen_origin(page, application, framework)


def _add_addresses(page: ResourcePage[Application], application: Application) -> None:
    """Raises Invalid, Conflict, Denied."""
    framework, origin = _chosen(page, application)
    redirect_uri, post_logout_uri = framework.redirect_uri(origin), framework.post_logout_uri(origin)
    command = ChangeApplication.build(
        redirect_uris=_with(application.redirect_uris, redirect_uri),
        post_logout_redirect_uris=_with(application.post_logout_redirect_uris, post_logout_uri),
    )
    change_application(page, application, command, application.version)


def change_application(
    page: ConsolePage, application: Application, command: ChangeApplication, version: int | None
) -> Application:
    """Change it, if this is still its version. Raises Invalid, Conflict, Denied."""
    organization_id = page.resource.organization_id or ""
    read_sector_list(page.request, command, organization_id=organization_id, stored=application)
    return page.services.applications.change(
        application.id, command, expected_version=version, principal=page.principal
    )


def _with(addresses: tuple[str, ...], address: str) -> tuple[str, ...]:
    return addresses if not address or address in addresses else (*addresses, address)


def _addresses_impact(page: ResourcePage[Application], application: Application) -> Sequence[str]:
    framework, origin = _chosen(page, application)
    return [uri for _label, uri, is_registered in needed_addresses(application, framework, origin) if not is_registered]


def _connect_path(page: ResourcePage[Any], application: Application) -> str:
    query = page.request.query_string
    return f"{page.resource_path}{CONNECT_PATH}{f'?{query}' if query else ''}"


#: The tab posts to it directly; opened by its address, it asks first.
ADD_ADDRESSES = Action[Application](
    path=ADDRESSES_PATH,
    run=_add_addresses,
    title=_("Register these addresses for “{name}”?"),
    submit_label=_("Register"),
    impact=_addresses_impact,
    cancel_label=_("Cancel"),
    back=_connect_path,
    is_destructive=False,
)
