"""Initial credentials and recovery: create a user, send a password link, set a one-time password."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from pyramid.response import Response

from identity.domain.messages import gettext_lazy as _
from identity.domain.organizations import Organization
from identity.domain.users import HumanUser, Profile, Subject
from identity.pages.forms import Form
from identity.pages.transactional_mails import TransactionalMails
from identity.plugins.console.actions import Action
from identity.plugins.console.console_page import ConsolePage
from identity.plugins.console.fields.users import HUMAN_USER_FIELDS, PROFILE_FIELDS
from identity.plugins.console.form_fields import FormField, RadioField, change_field, form_fields
from identity.plugins.console.resource_types import ORGANIZATION, USER
from identity.plugins.console.user_form import UserFormPage
from identity.services.commands.users import InviteHumanUser
from identity.services.users import InitialCredential

_LINK_KIND: Final = "link"
_PASSWORD_KIND: Final = "one_time_password"  # noqa: S105 - a kind

_ALREADY_CREATED_MESSAGE = _(
    "This was already done; the link or password was shown then. Make a new one if you did not save it."
)


_VALIDITY_MESSAGE = _("It stays valid until the person changes it.")


def user_subject(page: ConsolePage, user: HumanUser) -> Subject:
    """The user with their organization."""
    if page.organization is None:
        raise ValueError("a user belongs to an organization")
    return Subject(user, page.organization)


def _render_credential(
    page: ConsolePage, user: HumanUser, initial: InitialCredential, title: str, *, new: bool, hidden: bool
) -> Response:
    """The credential is in this response only, so there is no redirect. A ``hidden`` link is mailed but not shown,
    because using it proves access to the mailbox. A one-time password is shown, and mailed if possible.
    """
    subject = user_subject(page, user)
    actor = page.principal.subject
    is_mailed = hidden or initial.kind == _PASSWORD_KIND
    mailed = is_mailed and TransactionalMails(page.request, page.language).queue_initial_credential(
        subject, initial, new=new, inviter=actor
    )
    lifetime = page.services.passwords.reset_link_lifetime(user.id)
    variables = {
        "title": page.translate(title),
        "login_name": subject.login_name,
        "kind": initial.kind,
        "secret": "" if hidden else initial.secret,
        "works_once": TransactionalMails.describe_link_validity(lifetime, page.translator),
        "email": user.profile.email,
        "mailed": mailed,
        "to_change": page.services.passwords.requires_change_after_reset(subject),
        "back": USER.path_of(user),
        "hand_over": f"{USER.path_of(user)}{_HAND_OVER_LINK.path}",
    }
    return page.render(variables, template="console/initial_credential.html")


def _credential_options(page: ConsolePage) -> Sequence[Sequence[object]]:
    t = page.translator.gettext
    to_change = page.services.passwords.requires_change_after_reset(page.context.entity)
    after = t("It must be changed at the first sign-in.") if to_change else t(_VALIDITY_MESSAGE)
    return [
        (_LINK_KIND, t("A link"), t("The person chooses a password that only they know.")),
        (_PASSWORD_KIND, t("A one-time password"), after),
    ]


#: New accounts have a hint of their own.
_HINTS = {
    "user_name": _("Unique in the organization, without spaces. For example {example}", example="anna"),
    "email": _("The link or password is sent there."),
}
_FIELDS = tuple(
    replace(field, hint=_HINTS.get(field.name, field.hint))
    for field in (*form_fields(HumanUser, HUMAN_USER_FIELDS), *form_fields(Profile, PROFILE_FIELDS))
    if field.command_member in InviteHumanUser.model_fields
)


class UserCreatePage(UserFormPage):
    """Creates a user and shows the initial credential once."""

    section = "users"
    form_fields = (
        *_FIELDS,
        RadioField("initial", _("How the person signs in for the first time"), options=_credential_options),
    )
    following_field = "initial"
    is_creation = True
    title = _("New user")
    section_label = _("Users")
    submit_label = _("Create")

    def visible_fields(self) -> Sequence[FormField]:
        if self.services.mails.is_enabled:
            return self.form_fields
        return change_field(self.form_fields, "email", hint="")

    def initial_values(self) -> dict[str, str]:
        """Defaults to a link: only the person then knows the password."""
        return {"initial": _LINK_KIND}

    def submit(self, form: Form) -> Response:
        command = self.build_command(InviteHumanUser, form)
        self.redeem_submission_id(form, _ALREADY_CREATED_MESSAGE)
        hidden = command.initial == _LINK_KIND and self.services.mails.is_enabled and bool(command.email)
        user, initial = self.services.users.invite(
            self.entity_of(Organization).id, command, principal=self.principal, mailed=hidden
        )
        return _render_credential(self, user, initial, _("User created"), new=True, hidden=hidden)


def _make_link(page: ConsolePage, user: HumanUser, *, hidden: bool) -> Response:
    # The mail goes to this address, even if it was changed meanwhile.
    to = user.profile.email if hidden else ""
    link = page.services.users.issue_password_link(user.id, principal=page.principal, mailed_to=to)
    initial, title = InitialCredential(_LINK_KIND, link), _("New password link")
    return _render_credential(page, user, initial, title, new=False, hidden=hidden)


_LINK_IMPACT = (
    _("Until the link is used, the current password and all sessions stay valid."),
    _("Earlier links stop working."),
)


def _is_mailed(page: ConsolePage, user: HumanUser) -> bool:
    """True if a new link is mailed and not shown."""
    return page.services.mails.is_enabled and bool(user.profile.email)


def _link_impact(page: ConsolePage, user: HumanUser) -> Sequence[str]:
    sent = _("The link is sent to {email} and shown to nobody else.", email=user.profile.email)
    return (sent, *_LINK_IMPACT) if _is_mailed(page, user) else _LINK_IMPACT


#: Creates a link to choose a new password. It is mailed if possible.
_PASSWORD_LINK = Action[HumanUser](
    path="/password-link",
    run=lambda page, user: _make_link(page, user, hidden=_is_mailed(page, user)),
    already_done=_ALREADY_CREATED_MESSAGE,
    label=_("New password link"),
    button=_("Create link …"),
    description=_("A link for choosing a new password. The current password stays valid until then."),
    title=_("Create a new password link for {name}?"),
    impact=_link_impact,
    submit_label=lambda page, user: _("Send link") if _is_mailed(page, user) else _("Create link"),
    cancel_label=_("Cancel"),
    back="/security#password",
    is_destructive=False,
)

#: The link is shown here, so using it proves no access to the mailbox.
_HAND_OVER_LINK = Action[HumanUser](
    path="/link-to-hand-over",
    run=lambda page, user: _make_link(page, user, hidden=False),
    already_done=_ALREADY_CREATED_MESSAGE,
    is_available=_is_mailed,
    label=_("Link to hand over"),
    button=_("Create link …"),
    description=_("A link that you give to the person yourself. It does not confirm their email address."),
    title=_("Create a link to hand over to {name}?"),
    impact=(*_LINK_IMPACT, _("You see the link. It does not confirm the email address.")),
    submit_label=_("Create link"),
    cancel_label=_("Cancel"),
    back="/security#password",
    is_destructive=False,
)


def _password_impact(page: ConsolePage, user: HumanUser) -> Sequence[str]:
    to_change = page.services.passwords.requires_change_after_reset(user_subject(page, user))
    return (
        _("The current password stops working at once. All of the person's sessions, links and tokens end."),
        _("The new one must be changed at the next sign-in.") if to_change else _VALIDITY_MESSAGE,
    )


def _set_one_time_password(page: ConsolePage, user: HumanUser) -> Response:
    password = page.services.users.set_one_time_password(user.id, principal=page.principal)
    initial, title = InitialCredential(_PASSWORD_KIND, password), _("One-time password")
    return _render_credential(page, user, initial, title, new=False, hidden=False)


_ONE_TIME_PASSWORD = Action[HumanUser](
    path="/one-time-password",
    run=_set_one_time_password,
    already_done=_ALREADY_CREATED_MESSAGE,
    label=_("One-time password"),
    button=_("Set password …"),
    description=_("Replaces the current password at once."),
    title=_("Set a one-time password for {name}?"),
    impact=_password_impact,
    submit_label=_("Set one-time password"),
    cancel_label=_("Keep the current password"),
    back="/security#password",
    is_destructive=False,
)

CREDENTIAL_ACTIONS = (_PASSWORD_LINK, _HAND_OVER_LINK, _ONE_TIME_PASSWORD)

ROUTES = (ORGANIZATION.route("/users/new", UserCreatePage, "user.write"),)
