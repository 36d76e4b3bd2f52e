"""The tab Try it of applications: checks an authorization request, and previews the answer and the tokens.

It runs the code of the authorization endpoint up to the first page, and that of the token preview. Nothing is sent,
issued or recorded. A sign-in that ended in the console would need a redirect URI that the application did not
register."""

import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote, urlencode

from identity.domain.applications import (
    CLIENT_SECRET_JWT,
    PRIVATE_KEY_JWT,
    SELF_SIGNED_TLS_CLIENT_AUTH,
    TLS_CLIENT_AUTH,
    Application,
)
from identity.domain.errors import Invalid
from identity.domain.messages import gettext_lazy as _
from identity.http.endpoint_routes import request_context
from identity.http.token_previews import USER_PARAM, build_token_preview, find_user
from identity.plugins.console.console_page import ConsolePage
from identity.plugins.console.preview_results import preview_variables
from identity.plugins.console.query_page import QueryPage
from identity.plugins.console.resource_pages import DetailPage
from identity.provider.authorization_request import (
    AuthorizationRequest,
    parse_authorization_request,
    resolve_client_and_redirect_target,
)
from identity.provider.authorization_request_source import require_forms
from identity.provider.errors import OAuthError, UnredirectableError
from identity.provider.parameters import SECRET_PARAMETERS, Parameters
from identity.provider.protocol_request import ProtocolResponse
from identity.provider.redirect_target import RedirectTarget
from identity.provider.response_type import Artifact
from identity.provider.token_preview import TokenPreviewResult

TRY_IT_PATH = "/try-it"
REQUEST_FIELD = "request"
_MAX_REQUEST_LENGTH = 4000

#: Verifier and challenge of RFC 7636, Appendix B: public, so that nothing can be protected with them by mistake.
_CODE_VERIFIER = "dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk"
_CODE_CHALLENGE = "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM"

_ASSERTION_TYPE = "urn:ietf:params:oauth:client-assertion-type:jwt-bearer"

#: What stands for the members of the answer.
_MEMBERS: Mapping[Artifact, Mapping[str, str]] = {
    Artifact.CODE: {"code": "CODE"},
    Artifact.ACCESS_TOKEN: {"access_token": "ACCESS_TOKEN", "token_type": "Bearer"},
    Artifact.ID_TOKEN: {"id_token": "ID_TOKEN"},
}


@dataclass(frozen=True, slots=True, kw_only=True)
class TriedRequest:
    """``refusal`` is shown in the browser if there is no redirect target, else sent to the application as ``answer``.
    ``request`` is the validated request, None if it is refused. ``form_refusal`` is why it is refused as an address:
    the application has to push or sign it."""

    parameters: Mapping[str, str]
    target: RedirectTarget | None = None
    request: AuthorizationRequest | None = None
    refusal: OAuthError | None = None
    form_refusal: OAuthError | None = None

    @property
    def answer(self) -> ProtocolResponse | None:
        """The response to the application, with placeholders."""
        if self.target is None:
            return None
        if self.refusal is not None:
            return self.target.error_response(self.refusal)
        members: dict[str, str] = {}
        for artifact, values in _MEMBERS.items():
            if self.request is not None and artifact in self.request.response_type.artifacts:
                members |= values
        return self.target.success_response(members)

    @property
    def answer_text(self) -> str:
        """The address to which the browser returns, or the form that it posts."""
        answer = self.answer
        if answer is None:
            return ""
        if answer.form_post is not None:
            fields = "\n".join(f"{name}={value}" for name, value in answer.form_post.fields.items())
            return f"POST {answer.form_post.action}\n\n{fields}"
        return str(answer.headers["Location"])


def connects_with_certificate(application: Application) -> bool:
    """True if its token requests need a client certificate."""
    methods = (TLS_CLIENT_AUTH, SELF_SIGNED_TLS_CLIENT_AUTH)
    return application.authentication_method in methods or application.required_sender_constraint == "mutual_tls"


def application_endpoints(page: ConsolePage, application: Application) -> Mapping[str, Any]:
    """The discovery document, with the addresses for client certificates if the application has to present one."""
    document = page.discovery_document
    aliases = document.get("mtls_endpoint_aliases", {}) if connects_with_certificate(application) else {}
    return {**document, **aliases}


class TryItPage(QueryPage, DetailPage[Application]):
    template = "console/try_it.html"
    fields: tuple[str, ...] = (REQUEST_FIELD, USER_PARAM)

    def query(self) -> Mapping[str, str]:
        if REQUEST_FIELD in self.request.GET:
            return super().query()
        return {REQUEST_FIELD: self._example_request(), USER_PARAM: self._own_login_name(), **super().query()}

    def template_variables(self) -> Mapping[str, object]:
        tried, preview = None, None
        if REQUEST_FIELD in self.request.GET:
            tried = self._try_request(self.query().get(REQUEST_FIELD, ""))
            if tried is not None and tried.request is not None:
                preview = self._build_preview(tried.request)
        return {
            **super().template_variables(),
            "tried": tried,
            "is_possible": bool(self.entity.redirect_uris and self.entity.response_types),
            "token_request": "" if tried is None else self._token_request(tried),
            **preview_variables(self, preview),
        }

    def _example_request(self) -> str:
        """The address of a sign-in at this application; empty if none is possible."""
        application = self.entity
        if not application.redirect_uris or not application.response_types:
            return ""
        types = application.response_types
        values = {
            "client_id": application.id,
            "response_type": "code" if "code" in types else min(types),
            "redirect_uri": application.redirect_uris[0],
            "scope": "openid profile email",
            "state": "STATE",
            "nonce": "NONCE",
            "code_challenge": _CODE_CHALLENGE,
            "code_challenge_method": "S256",
        }
        return f"{self.discovery_document['authorization_endpoint']}?{urlencode(values, quote_via=quote)}"

    def _own_login_name(self) -> str:
        """That of the caller, if they may preview their own tokens."""
        subject = self.principal.subject
        visible_user = (
            None if subject is None else find_user(request_context(self.request), self.principal, subject.user.id)
        )
        return "" if visible_user is None else visible_user.login_name

    def _try_request(self, text: str) -> TriedRequest | None:
        """None if this is no request of the application; the reason is then at its field."""
        context = request_context(self.request)
        encoded = text.partition("#")[0]
        encoded = encoded.partition("?")[2] if "?" in encoded else encoded
        if not encoded or len(encoded) > _MAX_REQUEST_LENGTH:
            self.problems[REQUEST_FIELD] = _("Enter the address that your application opens, with its parameters.")
            return None
        try:
            parameters = Parameters.parse_leniently(encoded.encode())
        except OAuthError as error:
            return TriedRequest(parameters={}, refusal=error)
        if SECRET_PARAMETERS & (parameters.keys() | parameters.repeated.keys()):
            self.problems[REQUEST_FIELD] = _(
                "This contains a code, token or secret. Enter the request, not its answer."
            )
            return None
        if parameters.get("client_id", self.entity.id) != self.entity.id:
            self.problems[REQUEST_FIELD] = _("This is a request of another application: see client_id.")
            return None
        target = None
        try:
            client, target = resolve_client_and_redirect_target(parameters, context)
            request = parse_authorization_request(parameters, client, target, context)
        except UnredirectableError as error:
            return TriedRequest(parameters=parameters, refusal=error)
        except OAuthError as error:
            return TriedRequest(parameters=parameters, target=target, refusal=error)
        try:
            require_forms(client, frozenset())
        except OAuthError as error:
            return TriedRequest(parameters=parameters, target=target, request=request, form_refusal=error)
        return TriedRequest(parameters=parameters, target=target, request=request)

    def _build_preview(self, request: AuthorizationRequest) -> TokenPreviewResult | None:
        """None without a user, or if one does not exist."""
        user = self.query().get(USER_PARAM, "")
        if not user:
            return None
        try:
            return build_token_preview(
                request_context(self.request),
                self.principal,
                user=user,
                application=self.entity.id,
                scope=" ".join(request.scope),
                response_type=request.response_type.value,
            )
        except Invalid as refused:
            self.problems[USER_PARAM] = next(iter(refused.fields.values()))
            return None

    def _token_request(self, tried: TriedRequest) -> str:
        """The command that redeems the code, with placeholders; empty if there is none."""
        request, application = tried.request, self.entity
        if request is None or Artifact.CODE not in request.response_type.artifacts:
            return ""
        lines = [f"curl {shlex.quote(str(application_endpoints(self, application)['token_endpoint']))}"]
        if connects_with_certificate(application):
            lines.append("--cert client.crt --key client.key")
        elif application.needs_bound_tokens:
            lines.append('-H "DPoP: $DPOP_PROOF"')
        if application.authentication_method == "client_secret_basic":
            lines.append(f'-u {shlex.quote(application.id)}:"$CLIENT_SECRET"')
        else:
            lines.append(f"-d client_id={shlex.quote(application.id)}")
        if application.authentication_method == "client_secret_post":
            lines.append('-d client_secret="$CLIENT_SECRET"')
        elif application.authentication_method in (PRIVATE_KEY_JWT, CLIENT_SECRET_JWT):
            lines += [f"-d client_assertion_type={_ASSERTION_TYPE}", '-d client_assertion="$CLIENT_ASSERTION"']
        lines += [
            "-d grant_type=authorization_code",
            "-d code=CODE",
            f"--data-urlencode {shlex.quote(f'redirect_uri={request.redirect_uri}')}",
        ]
        if request.code_challenge is not None:
            is_example = request.code_challenge == _CODE_CHALLENGE
            lines.append(f"-d code_verifier={_CODE_VERIFIER if is_example else 'CODE_VERIFIER'}")
        return " \\\n  ".join(lines)
