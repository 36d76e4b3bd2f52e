"""Sign-in with upstream identity providers: OpenID providers and GitHub."""

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

from identity.api.plugins import hookimpl

if TYPE_CHECKING:
    from pyramid.config import Configurator

    from identity.api.entities import Subject
    from identity.api.grants import AssertionVerifier
    from identity.api.services import RecordNamespace, Services
    from identity.api.sign_in import Interaction, LogoutHandler


class UpstreamPlugin:
    """Sign-in with other identity providers: OpenID providers, Google, Microsoft Entra, GitLab, Apple, GitHub.
    List it before ``login``: a user who is redirected to a provider at once needs no login name page."""

    hookspecs = 1

    def __init__(self) -> None:
        self._name_space: RecordNamespace | None = None

    @hookimpl
    def identity_record_namespace(self, namespace: "RecordNamespace") -> None:
        """Linked identities, and the state of pending upstream sign-ins."""
        self._name_space = namespace

    @hookimpl
    def identity_interactions(self) -> "Iterable[Interaction]":
        """The redirect to a provider, and the question whether to link an unlinked identity."""
        from identity.plugins.upstream.provider_selection import UpstreamSignInInteraction
        from identity.plugins.upstream.unlinked_identities import LinkIdentityInteraction

        return [UpstreamSignInInteraction(), LinkIdentityInteraction(self._record_namespace)]

    @hookimpl
    def identity_assertion_verifiers(self) -> "Iterable[AssertionVerifier]":
        """Identity assertions of providers, for the applications that these list."""
        from identity.plugins.upstream.identity_assertions import IdentityAssertionVerifier

        return [IdentityAssertionVerifier(self._record_namespace)]

    @hookimpl
    def identity_logout_handlers(self) -> "Iterable[LogoutHandler]":
        """Logout at the provider, if its settings enable it."""
        from identity.plugins.upstream.logout import UpstreamLogoutHandler

        return [UpstreamLogoutHandler(self._record_namespace)]

    @hookimpl(optionalhook=True)
    def console_header_links(self, entity: object) -> "Iterable[tuple[str, str]]":
        """A button that tests an identity provider."""
        from identity.api.entities import UpstreamProvider
        from identity.api.pages import gettext_lazy

        if not isinstance(entity, UpstreamProvider) or not entity.is_complete:
            return ()
        return [(gettext_lazy("Test"), f"/console/upstream-providers/{entity.id}/test")]

    @hookimpl
    def identity_sign_in_methods(self) -> "Iterable[tuple[str, str, Callable[[Subject, Services], bool]]]":
        """Upstream identities, as one sign-in method of a policy."""
        from identity.api.pages import gettext_lazy
        from identity.plugins.upstream.provider_selection import SIGN_IN_METHOD

        return [(SIGN_IN_METHOD, gettext_lazy("Identity providers"), self._has_linked_identity)]

    @hookimpl
    def identity_configure(self, config: "Configurator") -> None:
        """Redirect and callback, buttons on the sign-in pages, linked identities in the account."""
        from identity.plugins.upstream import routes
        from identity.plugins.upstream.provider_registry import ProviderRegistry

        application = config.registry.application
        config.registry.upstream = ProviderRegistry(
            application.settings, self._record_namespace, application.process_state.key_sets.cache
        )
        routes.add_upstream_pages(config)

    def _has_linked_identity(self, subject: "Subject", services: "Services") -> bool:
        from identity.plugins.upstream.account_resolution import has_instance_linked_identity

        return has_instance_linked_identity(subject, services, self._record_namespace)

    @property
    def _record_namespace(self) -> "RecordNamespace":
        if self._name_space is None:
            raise ValueError("the plugin has no name space")
        return self._name_space
