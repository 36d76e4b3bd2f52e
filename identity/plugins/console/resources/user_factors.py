"""Second factors of a user: list and reset."""

from collections.abc import Sequence

from markupsafe import Markup

from identity.domain.enrolments import Enrolment
from identity.domain.messages import gettext_lazy as _
from identity.domain.users import HumanUser
from identity.http.endpoint_routes import request_context
from identity.plugins.console.actions import Action
from identity.plugins.console.console_page import ConsolePage
from identity.plugins.console.page_sections import TableSection
from identity.plugins.console.resource_types import USER

_SECTION_ID = "second-factors"


def factors_section(page: ConsolePage, user: HumanUser) -> TableSection:
    """The enrolments, with a button to reset them if permitted."""
    ui, enrolments = page.template_macros, page.services.factors.list_enrolments(user.id)
    rows = [
        (*_enrolment_labels(page, enrolment), ui.when(enrolment.added_at), page.relative_time(enrolment.last_used_at))
        for enrolment in enrolments
    ]
    reset = page.button_link(
        _("Reset …"),
        f"{USER.path_of(user)}{RESET_FACTORS.path}",
        hidden_label=page.translator.gettext("Second factors"),
    )
    return TableSection(
        _SECTION_ID,
        _("Second factors"),
        _("How the person proves who they are, in addition to the password. Only they can see the details."),
        reset if enrolments and page.has_permission("user.write") else Markup(),
        columns=(_("Name"), _("Added"), _("Last used")),
        rows=[(ui.named(ui.bold(name), sub=sub), added, used) for name, sub, added, used in rows],
        empty=_("The person has not set up any."),
    )


def _enrolment_labels(page: ConsolePage, enrolment: Enrolment) -> tuple[str, str]:
    """The label and its details."""
    factor = request_context(page.request).protocol.factors.get(enrolment.factor)
    label = enrolment.factor if factor is None else page.translator.gettext(factor.label)
    if enrolment.name and enrolment.name != label:
        return enrolment.name, label
    return label, "" if factor is None else page.translator.gettext(factor.status_text(enrolment))


def _impact(page: ConsolePage, user: HumanUser) -> Sequence[str]:
    enrolments = page.services.factors.list_enrolments(user.id)
    if not enrolments:
        return [_("The person has not set up any.")]
    named = page.translator.format_list([_enrolment_labels(page, enrolment)[0] for enrolment in enrolments])
    return [
        _("These are removed: {factors}.", factors=named),
        _("Browsers are no longer remembered."),
        _("Where one is required, the person sets up another at the next sign-in, with only the password."),
        _("Password and sessions stay as they are. The person is informed by mail."),
    ]


#: Removes all factors of a person who lost them.
RESET_FACTORS = Action[HumanUser](
    path="/factors/reset",
    run=lambda page, user: page.services.users.reset_factors(user.id, principal=page.principal),
    title=_("Reset the second factors of {name}?"),
    impact=_impact,
    submit_label=_("Reset second factors"),
    cancel_label=_("Keep them"),
    back=f"#{_SECTION_ID}",
)
