"""The mail server in the desired state."""

from identity.services.commands.mail_server import ChangeMailServer
from identity.services.desired_state.reconciler import ChangeAction, Reconciler, describe_differences


def ensure_mail_server(build: Reconciler, path: str, described: ChangeMailServer | None) -> None:
    """Set the described values; others stay. The password is not reported."""
    if described is None:
        return
    service = build.services.mail_server
    before = service.get()
    with build.collect_problems(f"{path}.mail_server"):
        after = service.change(described, principal=build.principal)
        if after == before:
            return
        names = sorted(described.model_fields_set - {"password"})
        different = {name: getattr(after, name) for name in names if getattr(after, name) != getattr(before, name)}
        if after.password_changed_at != before.password_changed_at:
            different["password_changed_at"] = after.password_changed_at
        build.record_change(ChangeAction.CHANGE, "mail server", "the instance", describe_differences(before, different))
