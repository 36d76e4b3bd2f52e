"""Linked identities in the account: listed on the security page, linked and unlinked here."""

from collections.abc import Iterable, Mapping

from pyramid.request import Request
from pyramid.response import Response

from identity.api.entities import NotFound, Subject, UpstreamProvider
from identity.api.pages import (
    Form,
    FormPage,
    NavigationGroup,
    NavigationItem,
    Page,
    SecuritySection,
    SecuritySectionRow,
    SignedInPage,
)
from identity.api.plugins import cached_property
from identity.plugins.upstream.account_resolution import INSTANCE_ADMINISTRATOR_MESSAGE, AccountResolver
from identity.plugins.upstream.authorization_states import UpstreamSignInPurpose
from identity.plugins.upstream.linked_identities import LinkedIdentities, LinkedIdentity
from identity.plugins.upstream.pages.authorization_redirect import redirect_to_provider
from identity.plugins.upstream.pages.provider_operator import describe_provider_operator

SECURITY_PATH = f"{Page.ACCOUNT_PATH}/security"
IDENTITIES_PATH = f"{Page.ACCOUNT_PATH}/identities"


def security_sections(page: SignedInPage) -> Iterable[SecuritySection]:
    """The linked identities, and the providers that can be linked."""
    t, services, when = page.translator.gettext, page.request.services, page.template_macros.when
    linked = LinkedIdentities.for_request(page.request).list_user_identities(page.subject.user.id)
    providers = services.upstream_providers
    offered = [
        item
        for item in providers.list_available(page.subject.organization.id)
        if providers.serves_subject(item, page.subject)
    ]
    rows = []
    for linked_identity in linked:
        provider = providers.find(linked_identity.provider_id)
        if provider is None:
            continue
        rests = () if providers.serves_subject(provider, page.subject) else (t(INSTANCE_ADMINISTRATOR_MESSAGE),)
        notes = (linked_identity.name, t("Linked on {date}", date=when(linked_identity.linked_at)), *rests)
        remove = NavigationItem(label=t("Unlink …"), href=f"{IDENTITIES_PATH}/{linked_identity.id}/remove")
        rows.append(SecuritySectionRow(name=provider.name, notes=notes, actions=(remove,)))
    for provider in offered:
        add = NavigationItem(label=t("Link …"), href=f"{IDENTITIES_PATH}/new/{provider.id}")
        if all(linked_identity.provider_id != provider.id for linked_identity in linked):
            rows.append(SecuritySectionRow(name=provider.name, notes=(t("Not linked"),), actions=(add,)))
    if rows:
        lead = t("Accounts with other providers that you can use to sign in here.")
        yield SecuritySection(id="identities", title=t("Linked accounts"), lead=lead, rows=tuple(rows))


def export_linked_identities(request: Request, subject: Subject) -> object:
    """The user's linked identities for the data export."""
    return [
        {"issuer": item.issuer, "subject": item.subject, "name": item.name, "linked_at": item.linked_at.isoformat()}
        for item in LinkedIdentities.for_request(request).list_user_identities(subject.user.id)
    ]


class _LinkedIdentityPage(SignedInPage, FormPage):
    """A page about a linked identity; requires a recent authentication."""

    requires_recent_authentication = True

    def navigation(self) -> tuple[NavigationGroup, ...]:
        """A link back to the security page."""
        return (
            NavigationGroup(
                items=(
                    NavigationItem(
                        label=self.translator.gettext("Security"), href=SECURITY_PATH, icon="lock", is_current=True
                    ),
                )
            ),
        )

    def common_variables(self) -> Mapping[str, object]:
        return {**super().common_variables(), "parent": self.translator.gettext("Your account"), "back": SECURITY_PATH}


class LinkIdentityPage(_LinkedIdentityPage):
    """Redirects to a provider to link an identity."""

    template = "upstream/link_identity.html"

    @property
    def redirects_off_site(self) -> bool:
        return True

    @cached_property
    def provider(self) -> UpstreamProvider:
        """The named provider. Raises NotFound for one that this user cannot use."""
        provider_id: str = self.request.matchdict["provider"]
        providers = self.request.services.upstream_providers
        offered: tuple[UpstreamProvider, ...] = providers.list_available(self.subject.organization.id)
        for upstream_provider in offered:
            if upstream_provider.id == provider_id and providers.serves_subject(upstream_provider, self.subject):
                return upstream_provider
        raise NotFound("identity provider", provider_id)

    def template_variables(self) -> Mapping[str, object]:
        """The provider's name and operator."""
        return {
            "provider": self.provider.name,
            "run_by": describe_provider_operator(self.provider, self.request.services),
        }

    def submit(self, form: Form) -> Response:
        """Redirect to the provider; the callback links the identity."""
        return redirect_to_provider(
            self.request,
            self.provider,
            UpstreamSignInPurpose.LINK,
            self.signed_in_account.session.id,
            return_path=SECURITY_PATH,
            requires_reauthentication=True,
        )


class UnlinkIdentityPage(_LinkedIdentityPage):
    """Asks for confirmation and shows the consequences."""

    template = "upstream/unlink_identity.html"

    @cached_property
    def linked_identity(self) -> LinkedIdentity:
        """The named link. Raises NotFound for one of another user."""
        link_id = self.request.matchdict["link"]
        for user_identity in LinkedIdentities.for_request(self.request).list_user_identities(self.subject.user.id):
            if user_identity.id == link_id:
                return user_identity
        raise NotFound("linked account", link_id)

    @cached_property
    def provider(self) -> UpstreamProvider:
        """Raises NotFound if the provider is deleted."""
        upstream_provider: UpstreamProvider = self.request.services.upstream_providers.get(
            self.linked_identity.provider_id
        )
        return upstream_provider

    def template_variables(self) -> Mapping[str, object]:
        """The identity's name, and whether another sign-in method remains."""
        services, user_id = self.request.services, self.subject.user.id
        linked_identities = [
            linked_identity
            for linked_identity in LinkedIdentities.for_request(self.request).list_user_identities(user_id)
            if linked_identity.id != self.linked_identity.id
        ]
        has_password = services.storage.users.find_password(user_id) is not None
        return {
            "provider": self.provider.name,
            "called": self.linked_identity.name,
            "only_way": not linked_identities and not has_password,
        }

    def submit(self, form: Form) -> Response:
        AccountResolver.for_request(self.request, self.provider).unlink_identity(self.linked_identity, self.subject)
        return self.redirect(SECURITY_PATH)
