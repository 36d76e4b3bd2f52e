"""Texts of mails in the desired state."""

from identity.domain.organizations import Organization
from identity.services.commands.mail_texts import ChangeMailTexts
from identity.services.desired_state.reconciler import ChangeAction, Reconciler


def ensure_mail_texts(
    build: Reconciler, path: str, name: str, organization: Organization | None, described: ChangeMailTexts | None
) -> None:
    """Set the described texts of an organization or of the instance; others stay."""
    if described is None:
        return
    service = build.services.mail_texts
    with build.collect_problems(f"{path}.mail_texts"):
        before = service.get(organization)
        after = service.change(organization, described, principal=build.principal)
        if after != before:
            build.record_change(ChangeAction.CHANGE, "mail texts", name)
