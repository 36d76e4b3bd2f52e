"""Linked accounts, in the account: listed on the security page, linked and unlinked here."""

from collections.abc import Iterable, Mapping

from pyramid.request import Request
from pyramid.response import Response

from identity.domain.errors import NotFound
from identity.domain.upstream_providers import UpstreamProvider
from identity.domain.users import Subject
from identity.lazily import lazily
from identity.pages.account_sections import SecurityRow, SecuritySection
from identity.pages.drawing import HOME
from identity.pages.forms import Form
from identity.pages.frame import Group, Item
from identity.pages.page import FormPage
from identity.pages.signed_in_page import SignedInPage
from identity.plugins.upstream.accounts import OF_HOLDER, Accounts
from identity.plugins.upstream.desk import desk_of
from identity.plugins.upstream.links import Link, Links
from identity.plugins.upstream.pages.going import send
from identity.plugins.upstream.pages.runners import run_by
from identity.plugins.upstream.states import Purpose

SECURITY = f"{HOME}/security"
IDENTITIES = f"{HOME}/identities"


def links_of(request: Request) -> Links:
    """The links that are kept."""
    return Links(request.services.records(desk_of(request).name_space), request.services.now)


def sections(page: SignedInPage) -> Iterable[SecuritySection]:
    """The accounts elsewhere that are linked, and those that could be."""
    t, services, when = page.words.t, page.request.services, page.ui.when
    linked = links_of(page.request).of(page.subject.user.id)
    providers = services.upstream_providers
    offered = [one for one in providers.offered(page.subject.organization.id) if providers.serves(one, page.subject)]
    rows = []
    for one in linked:
        provider = providers.find(one.provider_id)
        if provider is None:
            continue
        rests = () if providers.serves(provider, page.subject) else (t(OF_HOLDER),)
        notes = (one.name, t("Linked on {date}", date=when(one.linked_at)), *rests)
        remove = Item(label=t("Unlink …"), href=f"{IDENTITIES}/{one.id}/remove")
        rows.append(SecurityRow(name=provider.name, notes=notes, actions=(remove,)))
    for provider in offered:
        add = Item(label=t("Link …"), href=f"{IDENTITIES}/new/{provider.id}")
        if all(one.provider_id != provider.id for one in linked):
            rows.append(SecurityRow(name=provider.name, notes=(t("Not linked"),), actions=(add,)))
    if rows:
        lead = t("Accounts that you have elsewhere, with which you sign in here.")
        yield SecuritySection(id="identities", title=t("Linked accounts"), lead=lead, rows=tuple(rows))


def kept_of(request: Request, subject: Subject) -> object:
    """What is kept of a person's links, for whoever takes their data along."""
    return [
        {"issuer": one.issuer, "subject": one.subject, "name": one.name, "linked_at": one.linked_at.isoformat()}
        for one in links_of(request).of(subject.user.id)
    ]


class IdentityPage(SignedInPage, FormPage):
    """A page about a linked account, for whoever has just proved who they are."""

    needs_fresh = True

    def navigation(self) -> tuple[Group, ...]:
        """The way back."""
        return (Group(items=(Item(label=self.words.t("Security"), href=SECURITY, icon="lock", current=True),)),)

    def shared(self) -> Mapping[str, object]:
        """The frame, and who it is about."""
        return {**super().shared(), "parent": self.words.t("Your account"), "back": SECURITY}


class Add(IdentityPage):
    """Leads to a provider, to link an account there."""

    template = "upstream/link.html"

    @property
    def leads_away(self) -> bool:
        """True: to the provider."""
        return True

    @lazily
    def provider(self) -> UpstreamProvider:
        """Which one. Raises NotFound for one that is not for this person."""
        wanted: str = self.request.matchdict["provider"]
        providers = self.request.services.upstream_providers
        offered: tuple[UpstreamProvider, ...] = providers.offered(self.subject.organization.id)
        for one in offered:
            if one.id == wanted and providers.serves(one, self.subject):
                return one
        raise NotFound("identity provider", wanted)

    def show(self) -> Mapping[str, object]:
        """What it is called, and who runs it."""
        return {"provider": self.provider.name, "run_by": run_by(self.provider, self.request.services)}

    def submit(self, form: Form) -> Response:
        """To the provider; whoever comes back from there is linked."""
        return send(self.request, self.provider, Purpose.LINK, self.account.session.id, back=SECURITY, anew=True)


class Remove(IdentityPage):
    """Asks first, and says what follows."""

    template = "upstream/unlink.html"

    @lazily
    def link(self) -> Link:
        """Which one. Raises NotFound for those of others."""
        wanted = self.request.matchdict["link"]
        for one in links_of(self.request).of(self.subject.user.id):
            if one.id == wanted:
                return one
        raise NotFound("linked account", wanted)

    @lazily
    def provider(self) -> UpstreamProvider:
        """Where it is. Raises NotFound if that is gone."""
        found: UpstreamProvider = self.request.services.upstream_providers.get(self.link.provider_id)
        return found

    def show(self) -> Mapping[str, object]:
        """What it is called, and whether there is another way in."""
        services, user_id = self.request.services, self.subject.user.id
        others = [one for one in links_of(self.request).of(user_id) if one.id != self.link.id]
        has_password = services.storage.users.find_password(user_id) is not None
        return {"provider": self.provider.name, "called": self.link.name, "only_way": not others and not has_password}

    def submit(self, form: Form) -> Response:
        """Unlink it."""
        accounts = Accounts(self.request.services, links_of(self.request), self.provider)
        accounts.unlink(self.link, self.subject)
        return self.redirect(SECURITY)
