"""How a person first gets in, or gets in again: a new account, a link for a password, a one-time password."""

from collections.abc import Sequence
from dataclasses import replace
from typing import ClassVar, Final

from pyramid.response import Response

from identity.domain.users import HumanUser, Profile, Subject
from identity.domain.words import say
from identity.http import targets
from identity.pages.forms import Form
from identity.pages.mails import mail_initial, works_once
from identity.plugins.console.confirm_page import ConfirmThing
from identity.plugins.console.console_form import ConsoleForm
from identity.plugins.console.console_page import CONSOLE, ConsolePage
from identity.plugins.console.fields import Field, Radio, fields_of
from identity.plugins.console.places import Place, of_things
from identity.plugins.console.things import OfUser
from identity.services.commands.users import InviteHumanUser
from identity.services.users import Initial

_LINK: Final = "link"
_PASSWORD: Final = "one_time_password"  # noqa: S105 - a kind

_ALREADY = say("This was already done; the link or password was shown then. Make a new one if you did not save it.")


_STAYS = say("It stays good until the person changes it.")


def _can_mail(page: ConsolePage, email: str) -> bool:
    """True if what the person gets can be mailed to them."""
    return page.services.mails.enabled and bool(email)


def _shown_once(
    page: ConsolePage, user: HumanUser, initial: Initial, title: str, *, new: bool, hidden: bool
) -> Response:
    """The only answer that ever holds it: there is nothing to redirect to.

    A ``hidden`` link is mailed and never shown: it proves that the person reads the mailbox. A one-time password is
    both, where it can be mailed.
    """
    if page.organization is None:
        raise ValueError("a user belongs to an organization")
    subject = Subject(user, page.organization)
    by = page.principal.subject
    is_mailed = hidden or initial.kind == _PASSWORD
    mailed = is_mailed and mail_initial(page.request, subject, initial, new=new, by=by, language=page.language)
    lifetime = page.services.passwords.link_lifetime(user.id)
    back = f"{CONSOLE}/users/{user.id}"
    shown = {
        "title": page.said(title),
        "login_name": subject.login_name,
        "kind": initial.kind,
        "secret": "" if hidden else initial.secret,
        "works_once": works_once(lifetime, page.words),
        "email": user.profile.email,
        "mailed": mailed,
        "to_change": page.services.passwords.changed_after_reset(subject),
        "back": back,
        "hand_over": f"{back}{HandOverLink.at}",
    }
    return page.draw(shown, template="console/user_initial.html")


def _ways(page: ConsolePage) -> Sequence[Sequence[object]]:
    t = page.words.t
    to_change = page.services.passwords.changed_after_reset(page.context.value)
    after = t("It has to be changed at the first sign-in.") if to_change else t(_STAYS)
    return [
        (_LINK, t("A link"), t("The person chooses a password that nobody else knows.")),
        (_PASSWORD, t("A one-time password"), after),
    ]


#: What a new account is told in another way than an old one.
_HINTS = {
    "user_name": say("Unique in the organization, without spaces. For example {example}", example="anna"),
    "email": say("The link or password is sent there."),
}
_FIELDS = tuple(
    replace(one, hint=_HINTS.get(one.name, one.hint))
    for one in (*fields_of(HumanUser), *fields_of(Profile))
    if one.member in InviteHumanUser.model_fields
)


class NewUser(ConsoleForm):
    """Makes an account, and shows once what its person first enters it by."""

    section = "users"
    inputs = (*_FIELDS, Radio("initial", say("How the person gets in at first"), options=_ways))
    creates = True
    title = say("New user")
    under = say("Users")
    label = say("Create")

    def drawn(self) -> Sequence[Field]:
        if self.services.mails.enabled:
            return self.inputs
        return [replace(one, hint="") if one.name == "email" else one for one in self.inputs]

    def values(self) -> dict[str, str]:
        """A link: then nobody but the person ever knows the password."""
        return {"initial": _LINK}

    def submit(self, form: Form) -> Response:
        command = self.decoded(InviteHumanUser, self.typed(form))
        self.use_once(form, _ALREADY)
        hidden = command.initial == _LINK and _can_mail(self, command.email)
        user, initial = self.services.users.invite(self.context.value.id, command, by=self.principal, mailed=hidden)
        return _shown_once(self, user, initial, say("User created"), new=True, hidden=hidden)


class _NewAccess(OfUser, ConfirmThing):
    below = "#password"
    action = "write"
    danger = False
    creates = True
    #: The heading of the page that shows it.
    made: ClassVar[str]

    @property
    def hidden(self) -> bool:
        """True if only the person gets to see it."""
        return False

    def make(self) -> Initial:
        """What the person gets."""
        raise NotImplementedError

    def submit(self, form: Form) -> Response:
        self.use_once(form, _ALREADY)
        return _shown_once(self, self.thing, self.make(), self.made, new=False, hidden=self.hidden)


class _Link(_NewAccess):
    title = say("Make a new password link for {name}?")
    keep = say("Cancel")
    made = say("New password link")
    replaced: ClassVar[tuple[str, ...]] = (
        say("Nothing ends before the link is used: the present password and all sessions stay."),
        say("Links that were made before stop working."),
    )

    def make(self) -> Initial:
        # The mail goes there, even if the person has another address by now.
        to = self.thing.profile.email if self.hidden else ""
        link = self.services.users.new_password_link(self.thing.id, by=self.principal, mailed_to=to)
        return Initial(_LINK, link)


class NewPasswordLink(_Link):
    """Asks before a link is made by which the person chooses a new password. It is mailed where that can be done."""

    at = "/password-link"
    way = (say("New password link"), say("Make link …"))
    offer = say("A link by which the person chooses a new password. The present one stays valid until then.")

    @property
    def hidden(self) -> bool:
        return _can_mail(self, self.thing.profile.email)

    @property
    def effects(self) -> Sequence[str]:
        sent = say("The link is sent to {email}. Nobody else sees it.", email=self.thing.profile.email)
        return (sent, *self.replaced) if self.hidden else self.replaced

    @property
    def label(self) -> str:
        return say("Send link") if self.hidden else say("Make link")


class HandOverLink(_Link):
    """The same for a link that is shown here, and therefore proves nothing."""

    at = "/link-to-hand-over"
    title = say("Make a link to hand over to {name}?")
    way = (say("Link to hand over"), say("Make link …"))
    offer = say("A link that you give to the person yourself. It does not confirm their email address.")
    label = say("Make link")
    effects = (*_Link.replaced, say("You see the link. It does not confirm the email address."))

    @property
    def offered(self) -> bool:
        return _can_mail(self, self.thing.profile.email)


class OneTimePassword(_NewAccess):
    """Asks before the present password is replaced."""

    at = "/one-time-password"
    way = (say("One-time password"), say("Set password …"))
    offer = say("Replaces the present password at once.")
    title = say("Set a one-time password for {name}?")
    label = say("Set one-time password")
    keep = say("Keep the present password")
    made = say("One-time password")

    @property
    def effects(self) -> Sequence[str]:
        to_change = self.services.passwords.changed_after_reset(self.person)
        return (
            say("The present password stops working at once. All sessions, links and tokens of the person end."),
            say("The new one has to be changed at the next sign-in.") if to_change else _STAYS,
        )

    def make(self) -> Initial:
        return Initial(_PASSWORD, self.services.users.one_time_password(self.thing.id, by=self.principal))


PLACES = (
    Place("/organizations/{organization}/users/new", NewUser, "user.write", targets.organization),
    *of_things(NewPasswordLink, HandOverLink, OneTimePassword),
)
