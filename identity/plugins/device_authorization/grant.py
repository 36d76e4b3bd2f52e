"""Grant urn:ietf:params:oauth:grant-type:device_code (RFC 8628 §3.4, §3.5).

A token request, which the device repeats until there is a decision::

    POST /oauth/v2/token
    Content-Type: application/x-www-form-urlencoded

    grant_type=urn%3Aietf%3Aparams%3Aoauth%3Agrant-type%3Adevice_code&device_code=…&client_id=…
"""

from identity.api.endpoints import AccessDenied, Context, InvalidGrant, OAuthError
from identity.api.entities import HumanUser
from identity.api.grants import Authorization, CodeGrantType, PreviewInput, RefreshTokenTerms, Scope, TokenRequest
from identity.api.services import RecordNamespace
from identity.api.sign_in import Proof
from identity.plugins.device_authorization.device_requests import DeviceRequestStore
from identity.plugins.device_authorization.endpoint import GRANT_TYPE


class AuthorizationPending(OAuthError):
    """The person has not decided yet."""

    error = "authorization_pending"


class SlowDown(OAuthError):
    """As before, and the device polls too often: it must wait five seconds longer from now on."""

    error = "slow_down"


class ExpiredToken(OAuthError):
    """The person did not decide in time."""

    error = "expired_token"


class DeviceCodeGrant(CodeGrantType):
    """The device code becomes a code that can be redeemed once, at the moment when the person approves."""

    grant_type = GRANT_TYPE
    parameters = frozenset({"device_code"})

    def __init__(self, namespace: RecordNamespace) -> None:
        self._name_space = namespace

    def authorize(self, request: TokenRequest, context: Context) -> Authorization:
        """The authorization that the person approved. Raises AuthorizationPending, SlowDown, AccessDenied,
        ExpiredToken, InvalidGrant."""
        client, device_code = request.client, request.parameters.require_value("device_code")
        if client is None:
            raise ValueError("the token endpoint authenticates the client first")
        requests = DeviceRequestStore(context.services, self._name_space)
        polled = requests.find_polled(device_code, client)
        if polled is None:
            raise InvalidGrant("the device code is unknown, or was issued to another client")
        presented = context.services.tokens.find_code(device_code)
        if presented is not None:
            problem = self.find_problem(presented, context)
            if problem is not None:
                self.refuse_code(presented, client, problem, context)
            return self.build_authorization(presented, client, context)
        if requests.is_denied(device_code):
            raise AccessDenied("the person denied the request")
        if requests.is_expired(polled):
            raise ExpiredToken("the device code has expired: request another")
        if not requests.record_poll(polled):
            raise SlowDown("wait five seconds longer between two requests", keep_changes=True)
        raise AuthorizationPending("the person has not decided yet", keep_changes=True)

    def preview(self, preview_input: PreviewInput, context: Context) -> Authorization | None:
        """What a person's approval would bring, if the application may use the grant. Raises InvalidScope."""
        subject, client = preview_input.subject, preview_input.client
        if subject is None or client is None or not isinstance(subject.user, HumanUser):
            return None
        if self.grant_type not in client.application.grant_types:
            return None
        scope = preview_input.requested_scopes or (Scope.OPENID,)
        self.require_scopes(scope, context)
        refreshing = RefreshTokenTerms(ends_at=context.now + context.settings.refresh_token_max_age, scope=scope)
        return Authorization(
            subject=subject,
            client=client,
            client_id=client.id,
            requested_scopes=scope,
            authenticated_at=context.now,
            methods=(Proof.PASSWORD_METHOD,),
            refresh_token_terms=refreshing if Scope.OFFLINE_ACCESS in scope else None,
        )
