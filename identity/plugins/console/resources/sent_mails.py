"""The log of sent mails: of all, and of one user."""

from collections.abc import Mapping, Sequence

from markupsafe import Markup

from identity.domain.messages import gettext_lazy as _
from identity.domain.sent_mails import MailOutcome, SentMail
from identity.domain.users import HumanUser
from identity.pages.line_breaks import with_line_breaks
from identity.plugins.console.badges import Badge
from identity.plugins.console.console_page import ConsolePage
from identity.plugins.console.fields.mail_texts import MAIL_LABELS
from identity.plugins.console.lists import Cells, ResourceList, list_route
from identity.plugins.console.resource_types import INSTANCE, USER
from identity.plugins.console.user_display import display_user
from identity.services.mails import MailReason

_SECTION = "instance/sent-mails"

#: Text and kind of the badge.
_OUTCOMES = {
    MailOutcome.SENT: (_("Sent"), "success"),
    MailOutcome.REFUSED: (_("Refused"), "danger"),
    MailOutcome.GIVEN_UP: (_("Given up"), "danger"),
}
#: Kinds are not only those of texts: mails of older versions have none.
_KIND_LABELS: Mapping[str, str] = {str(kind): label for kind, label in MAIL_LABELS.items()} | {
    MailReason.TEST: _("Test mail")
}
_COLUMNS = (_("Mail"), _("Recipient"), _("State"), _("Last answer"), _("Ended"))


def _rows(page: ConsolePage, mails: Sequence[SentMail]) -> Sequence[Cells]:
    ui, t, nt = page.template_macros, page.translator.gettext, page.translator.ngettext
    user_ids = {mail.user_id for mail in mails if mail.user_id is not None}
    subjects = page.services.storage.users.find_subjects(user_ids)
    rows = []
    for mail in mails:
        text, kind = _OUTCOMES[mail.outcome]
        tries = nt("{n} attempt", "{n} attempts", mail.attempts)
        below = " · ".join(filter(None, (mail.language, str(tries))))
        recipient: Markup | str = with_line_breaks(mail.recipient) or page.render_placeholder(_("Not shown"))
        subject = subjects.get(mail.user_id or "")
        if subject is not None:
            recipient = ui.named(recipient, sub=page.entity_link(display_user(page, subject)))
        rows.append(
            (
                ui.named(t(_KIND_LABELS.get(mail.kind, mail.kind or _("Unknown"))), sub=below),
                recipient,
                page.render_badge(Badge(t(text), kind)),
                ui.named(with_line_breaks(mail.reply), sub=with_line_breaks(mail.message_id)),
                ui.when(mail.ended_at, clock=True),
            )
        )
    return rows


SENT_MAILS = ResourceList[SentMail](
    path=f"/{_SECTION}",
    permission="instance.read",
    section=_SECTION,
    title=_("Sent mails"),
    lead=_("What became of each mail, without its content. The page of a user lists those to the user."),
    columns=_COLUMNS,
    is_searchable=False,
    has_state_filter=False,
    fetch=lambda page, request: page.services.sent_mails.page(request, principal=page.principal),
    rows=_rows,
    empty_title=_("No sent mails"),
    empty_text=_("Mails appear here once the mail server has taken or refused them."),
)

USER_MAILS = ResourceList[SentMail](
    path="/mails",
    permission="user.read",
    title=_("Mails"),
    lead=_("Mails to this user, without their content."),
    columns=_COLUMNS,
    is_searchable=False,
    has_state_filter=False,
    fetch=lambda page, request: page.services.sent_mails.page_of_user(
        page.entity_of(HumanUser).id, request, principal=page.principal
    ),
    rows=_rows,
    empty_title=_("No sent mails"),
    empty_text=_("Mails appear here once the mail server has taken or refused them."),
    all_label=_("All mails"),
)

ROUTES = (list_route(SENT_MAILS, INSTANCE), list_route(USER_MAILS, USER))
