"""Links an unlinked identity during the sign-in that it started."""

from collections.abc import Mapping

from pyramid.request import Request
from pyramid.response import Response

from identity.api.entities import Conflict, Subject
from identity.api.pages import Form, SignedInPage, gettext_lazy, render_error_page
from identity.api.plugins import cached_property
from identity.api.sign_in import SignInPage
from identity.plugins.upstream import unlinked_identities
from identity.plugins.upstream.account_resolution import AccountResolver
from identity.plugins.upstream.linked_identities import linked_identity_id
from identity.plugins.upstream.pages.provider_operator import describe_provider_operator
from identity.plugins.upstream.provider_registry import get_provider_registry, plugin_records
from identity.plugins.upstream.unlinked_identities import LinkIdentityInteraction, UnlinkedIdentity

#: The account and identity that the page showed: another window may have changed both.
_ACCOUNT_FIELD, _IDENTITY_FIELD = "account", "identity"
_DECISION_FIELD = "decision"


class _IdentityLinkingPage(SignInPage):
    @cached_property
    def unlinked_identity(self) -> UnlinkedIdentity | None:
        """The unlinked identity of this sign-in."""
        return unlinked_identities.find_unlinked_identity(
            self.request.services, get_provider_registry(self.request).name_space, self.pending_authorization
        )


class UnknownIdentityPage(_IdentityLinkingPage):
    """/login/{request}/upstream/unlinked: no account is linked; users can authenticate and link it."""

    template = "upstream/unknown_identity.html"

    def template_variables(self) -> Mapping[str, object] | Response:
        """The identity's name."""
        if self.unlinked_identity is None:
            return self.redirect_to_next()
        provider = self.unlinked_identity.provider
        return {
            "provider": provider.name,
            "called": self.unlinked_identity.name,
            "run_by": describe_provider_operator(provider, self.request.services),
        }

    def submit(self, form: Form) -> Response:
        """Require authentication, even if an account is signed in at this browser."""
        if self.unlinked_identity is not None:
            self.request.services.sign_ins.require_reauthentication(self.pending_authorization)
        return self.redirect_to_next()


class ConfirmLinkingPage(_IdentityLinkingPage):
    """/login/{request}/upstream/link: asks the authenticated user whether to link the identity."""

    template = "upstream/confirm_linking.html"
    fields = (_ACCOUNT_FIELD, _IDENTITY_FIELD)

    @cached_property
    def subject(self) -> Subject | None:
        """The authenticated user; None unless this is the current step."""
        return self.sign_in.authenticated_subject if self.is_next_interaction(LinkIdentityInteraction.name) else None

    def template_variables(self) -> Mapping[str, object] | Response:
        unlinked_identity = self.unlinked_identity
        if self.subject is None or unlinked_identity is None:
            return self.redirect_to_next()
        return {
            "provider": unlinked_identity.provider.name,
            "called": unlinked_identity.name,
            "run_by": describe_provider_operator(unlinked_identity.provider, self.request.services),
            "login_name": self.subject.login_name,
            "organization": self.subject.organization.name,
            "fits": AccountResolver.for_request(self.request, unlinked_identity.provider).can_sign_in(self.subject),
            "account": self.subject.user.id,
            "identity": linked_identity_id(unlinked_identity.provider, unlinked_identity.external_user),
        }

    def submit(self, form: Form) -> Response:
        """Link it or not. The question is asked once."""
        subject, unlinked_identity = self.subject, self.unlinked_identity
        if subject is None or unlinked_identity is None:
            return self.redirect_to_next()
        expected = (subject.user.id, linked_identity_id(unlinked_identity.provider, unlinked_identity.external_user))
        decision = form.text(_DECISION_FIELD)
        if (form.text(_ACCOUNT_FIELD), form.text(_IDENTITY_FIELD)) != expected or decision not in ("link", "leave"):
            return self.redirect_to_next()
        if decision == "link" and not self._is_fresh():
            self.request.services.sign_ins.require_reauthentication(self.pending_authorization)
            return self.redirect_to_next()
        redeemed = unlinked_identities.redeem_unlinked_identity(
            plugin_records(self.request), self.pending_authorization
        )
        accounts = AccountResolver.for_request(self.request, unlinked_identity.provider)
        if redeemed and decision == "link" and accounts.can_sign_in(subject):
            try:
                accounts.link_identity(unlinked_identity.external_user, subject)
            except Conflict:
                return identity_in_use_page(self.request, (gettext_lazy("Continue"), self.context.resume_path))
        return self.redirect_to_next()

    def _is_fresh(self) -> bool:
        """True if the user authenticated in the last ten minutes; the sign-in may be older."""
        proved_at = (
            self.pending_authorization.authenticated_at
            if any(proof.is_dated for proof in self.pending_authorization.proofs)
            else None
        )
        return proved_at is not None and self.request.services.now - proved_at < SignedInPage.RECENT_AUTHENTICATION_AGE


def identity_in_use_page(request: Request, action: tuple[str, str]) -> Response:
    """The page for an identity that is linked to another user."""
    return render_error_page(
        request,
        409,
        gettext_lazy("This account is linked to somebody else here"),
        [gettext_lazy("Sign in with it, unlink it there, then link it here.")],
        action=action,
    )
