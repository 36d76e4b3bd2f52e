"""What a person has set up to prove who they are by: listed without what it is, and reset."""

from collections.abc import Sequence

from markupsafe import Markup

from identity.domain.factors import Enrolment
from identity.domain.words import say
from identity.http.endpoints import context_of
from identity.plugins.console.confirm_page import ConfirmPage
from identity.plugins.console.places import of_things
from identity.plugins.console.sections import Table
from identity.plugins.console.things import OfUser

_ID = "second-factors"


def factors_section(page: OfUser) -> Table:
    """All of them, with the way to reset them for whoever may."""
    ui, found = page.ui, page.services.factors.of(page.thing.id)
    rows = [(*_words_of(page, one), ui.when(one.added_at), page.ago(one.last_used_at)) for one in found]
    reset = page.link(say("Reset …"), f"{page.href}{ResetFactors.at}", what=page.words.t("Second factors"))
    return Table(
        _ID,
        say("Second factors"),
        say("What the person proves who they are by, besides the password. Nobody but they can see more of it."),
        reset if found and page.may("user.write") else Markup(),
        columns=(say("Name"), say("Added"), say("Last used")),
        rows=[(ui.named(ui.bold(name), sub=sub), added, used) for name, sub, added, used in rows],
        empty=say("The person has set up none."),
    )


def _words_of(page: OfUser, enrolment: Enrolment) -> tuple[str, str]:
    """What it is called, and what is known of it."""
    factor = context_of(page.request).protocol.factors.get(enrolment.factor)
    label = enrolment.factor if factor is None else page.words.t(factor.label)
    if enrolment.name and enrolment.name != label:
        return enrolment.name, label
    return label, "" if factor is None else page.words.t(factor.note(enrolment))


class ResetFactors(OfUser, ConfirmPage):
    """Asks before a person's factors are removed, for whoever has lost them."""

    at, action = "/factors/reset", "write"
    below = f"#{_ID}"
    title = say("Reset the second factors of {name}?")
    label = say("Reset second factors")
    keep = say("Keep them")

    @property
    def effects(self) -> Sequence[str]:
        found = self.services.factors.of(self.thing.id)
        if not found:
            return [say("The person has set up none.")]
        named = self.words.listed([_words_of(self, one)[0] for one in found])
        return [
            say("They are removed: {factors}.", factors=named),
            say("Browsers that are remembered count no more."),
            say("Where one is needed, the person sets up another at the next sign-in, by the password alone."),
            say("Password and sessions stay as they are. The person is told by mail."),
        ]

    def act(self) -> None:
        self.services.users.reset_factors(self.thing.id, by=self.principal)


PLACES = of_things(ResetFactors)
