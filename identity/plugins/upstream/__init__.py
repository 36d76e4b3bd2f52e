"""Signing in elsewhere: at OpenID providers and at GitHub."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from identity import hookimpl

if TYPE_CHECKING:
    from pyramid.config import Configurator

    from identity.domain.records import NameSpace
    from identity.domain.users import Subject
    from identity.provider.interaction import Interaction
    from identity.provider.sign_out_way import SignOutWay
    from identity.services.bundle import Services


class Plugin:
    """People sign in at other identity providers: OpenID providers, Google, Microsoft Entra, GitLab, Apple, GitHub.

    Stands before ``login``, so that people who are sent there at once are not asked for a login name first.
    """

    hookspecs = 1

    @dataclass(frozen=True)
    class Settings:
        """None."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self._name_space: NameSpace | None = None

    @hookimpl
    def identity_name_space(self, name_space: "NameSpace") -> None:
        """Links, and what waits for people who were sent away."""
        self._name_space = name_space

    @hookimpl
    def identity_interactions(self) -> "Iterable[Interaction]":
        """One that sends people straight to a provider, one that asks whether to link an account there."""
        from identity.plugins.upstream.unlinked import LinkIdentity
        from identity.plugins.upstream.ways import SignInElsewhere

        return [SignInElsewhere(), LinkIdentity(self._kept)]

    @hookimpl
    def identity_sign_out_ways(self) -> "Iterable[SignOutWay]":
        """To the provider, where its setting says so."""
        from identity.plugins.upstream.sign_out import SignOutThere

        return [SignOutThere(self._kept)]

    @hookimpl(optionalhook=True)
    def console_actions(self, thing: object) -> "Iterable[tuple[str, str]]":
        """A button that tries an identity provider."""
        from identity.domain.upstream_providers import UpstreamProvider
        from identity.domain.words import say

        if not isinstance(thing, UpstreamProvider) or not thing.usable:
            return ()
        return [(say("Test"), f"/console/upstream-providers/{thing.id}/test")]

    @hookimpl
    def identity_ways(self) -> "Iterable[tuple[str, str, Callable[[Subject, Services], bool]]]":
        """Accounts elsewhere, as one way that a policy allows or does not."""
        from identity.domain.words import say
        from identity.plugins.upstream.ways import FACTOR

        return [(FACTOR, say("Identity providers"), self._has_link)]

    @hookimpl
    def identity_configure(self, config: "Configurator") -> None:
        """The ways there and back, buttons on the pages of signing in, linked accounts."""
        from identity.plugins.upstream import routes
        from identity.plugins.upstream.desk import Desk

        config.registry.upstream = Desk(config.registry.identity.settings, self._kept)
        routes.configure(config)

    def _has_link(self, subject: "Subject", services: "Services") -> bool:
        from identity.plugins.upstream.accounts import linked_by_instance

        return linked_by_instance(subject, services, self._kept)

    @property
    def _kept(self) -> "NameSpace":
        if self._name_space is None:
            raise ValueError("the plugin has no name space")
        return self._name_space
