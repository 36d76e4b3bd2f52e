"""What a manager's trial sign-in at a provider has shown: the claims received, and what they would lead to here."""

from collections.abc import Iterator, Mapping
from datetime import timedelta
from typing import Any

from pyramid.request import Request

from identity.api.crypto import new_token
from identity.api.entities import Resource, Subject, UpstreamProvider, email_domain
from identity.api.pages import gettext_lazy as _
from identity.plugins.upstream.account_resolution import (
    AccountDecision,
    AccountResolver,
    AccountUnavailable,
    IdentityNotLinked,
    LinkedAccount,
    NewAccount,
)
from identity.plugins.upstream.provider_checks import CheckState, ProviderCheck
from identity.plugins.upstream.provider_clients import ExternalUser
from identity.plugins.upstream.provider_registry import plugin_records
from identity.plugins.upstream.provider_selection import SIGN_IN_METHOD

_RECORD_KIND = "trial"
#: How long a result can be shown again; it holds claims, and none of the provider's tokens.
_LIFETIME = timedelta(minutes=15)


def store_trial(request: Request, provider: UpstreamProvider, external_user: ExternalUser) -> str:
    """Store what the provider sent for the session of this request; returns the id of the result."""
    session, trial_id = request.signed_in_account.session, new_token()
    content = {
        "provider": provider.id,
        "session": session.id,
        "issuer": external_user.issuer,
        "subject": external_user.subject,
        "claims": dict(external_user.profile_claims),
        "recent": external_user.is_recently_authenticated,
    }
    plugin_records(request).add(
        _RECORD_KIND,
        trial_id,
        content,
        user_id=request.signed_in_account.subject.user.id,
        expires_at=request.services.now + _LIFETIME,
        seal=True,
    )
    return trial_id


def find_trial(request: Request, provider: UpstreamProvider, trial_id: str) -> ExternalUser | None:
    """The identity of the trial, for the session that made it."""
    record = plugin_records(request).find(_RECORD_KIND, trial_id)
    content: Mapping[str, Any] = {} if record is None else record.value
    if content.get("provider") != provider.id or content.get("session") != request.signed_in_account.session.id:
        return None
    return ExternalUser(
        issuer=content["issuer"],
        subject=content["subject"],
        claims=content["claims"],
        is_recently_authenticated=content["recent"],
    )


def explain_trial(request: Request, provider: UpstreamProvider, external_user: ExternalUser) -> Iterator[ProviderCheck]:
    """What a sign-in of this identity would lead to, decided by the code that handles sign-ins. Nothing is changed."""
    yield _explain_account(request, provider, external_user)
    yield _explain_email(request, provider, external_user)
    yield _explain_methods(provider, external_user)
    if not external_user.is_recently_authenticated:
        yield _result(
            CheckState.WARNING,
            _("It does not say when you signed in"),
            _(
                "Without auth_time it does not count as a new sign-in: applications that request one let people confirm"
                " with a factor of their account here."
            ),
        )


def _explain_account(request: Request, provider: UpstreamProvider, external_user: ExternalUser) -> ProviderCheck:
    services = request.services
    organization = services.organizations.get(provider.organization_id)
    try:
        # A provider for all organizations creates accounts in that of the application; here it is its own.
        decision = AccountResolver.for_request(request, provider).decide(external_user, organization)
    except IdentityNotLinked:
        if provider.create_accounts:
            why = _("The organization's registration rules do not allow an account with this address.")
        else:
            why = _("The provider does not create accounts.")
        return _result(CheckState.WARNING, _("You would be asked to sign in to link"), why)
    except AccountUnavailable as refused:
        return _result(CheckState.FAILED, _("You would be refused"), refused.user_message)
    return _explain_decision(request, decision)


def _explain_decision(request: Request, decision: AccountDecision) -> ProviderCheck:
    services = request.services
    account = decision if isinstance(decision, NewAccount) else decision.subject
    if not services.policies.allows_factor(
        account if isinstance(account, Subject) else account.organization, SIGN_IN_METHOD
    ):
        return _result(
            CheckState.FAILED,
            _("You would be refused"),
            _("{organization} does not allow this sign-in method.", organization=account.organization.name),
        )
    if isinstance(account, NewAccount):
        return _result(
            CheckState.OK,
            _("You would get a new account"),
            _(
                "In {organization}, with the user name {user_name}, or a similar one if it is taken.",
                organization=account.organization.name,
                user_name=account.user_name,
            ),
        )
    name = _visible_name(request, account)
    if isinstance(decision, LinkedAccount):
        return _result(
            CheckState.OK, _("You would be signed in"), _("Your account there is linked to {name}.", name=name)
        )
    return _result(
        CheckState.OK,
        _("You would be signed in and linked"),
        _("The verified address belongs to {name}.", name=name),
    )


def _visible_name(request: Request, subject: Subject) -> str:
    """The login name, for managers who may read the user."""
    access = request.services.access_control
    resource = Resource.of_organization(subject.organization.id)
    return subject.login_name if access.is_permitted(request.identity, "user.read", resource) else _("an account")


def _explain_email(request: Request, provider: UpstreamProvider, external_user: ExternalUser) -> ProviderCheck:
    services = request.services
    sent = external_user.claims.get("email")
    if not isinstance(sent, str) or not sent:
        return _result(
            CheckState.WARNING,
            _("No email address came"),
            _("Request the scope or claim “email” at the provider. Without it, people cannot be matched to accounts."),
        )
    email = external_user.verified_email
    if not email:
        return _result(
            CheckState.WARNING,
            _("The email address is not verified there"),
            _("{email} comes without email_verified, so it proves nothing here.", email=sent),
        )
    organization = services.organizations.get(provider.organization_id)
    if not provider.trust_email:
        return _result(
            CheckState.WARNING,
            _("The email address does not count as verified"),
            _("{email} is verified there. Turn on “Trust email addresses” to let it count here.", email=email),
        )
    if not AccountResolver.for_request(request, provider).trusted_email(external_user, organization):
        return _result(
            CheckState.WARNING,
            _("The email address does not count as verified"),
            _(
                "{organization} has not verified the domain {domain}.",
                organization=organization.name,
                domain=email_domain(email),
            ),
        )
    return _result(
        CheckState.OK,
        _("The email address counts as verified"),
        _("{email} is in a verified domain of {organization}.", email=email, organization=organization.name),
    )


def _explain_methods(provider: UpstreamProvider, external_user: ExternalUser) -> ProviderCheck:
    methods = external_user.authentication_methods
    if provider.trust_methods and methods:
        text = _("It reports {methods}, which counts here.", methods=", ".join(methods))
    elif methods:
        text = _(
            "It reports {methods}, which does not count here: the sign-in policy asks for second factors itself.",
            methods=", ".join(methods),
        )
    else:
        text = _("It does not report how you signed in: the sign-in policy asks for second factors itself.")
    return _result(CheckState.OK, _("Second factors"), text)


def _result(state: CheckState, title: str, text: str) -> ProviderCheck:
    return ProviderCheck(state=state, title=title, text=text)
