"""Webhooks in the desired state."""

from functools import partial

from identity.domain.organizations import Organization
from identity.domain.webhooks import Webhook
from identity.services.commands.desired_state import WebhookSpec
from identity.services.commands.webhooks import ChangeWebhook, CreateWebhook
from identity.services.desired_state.existing_rows import ExistingRows
from identity.services.desired_state.reconciler import ChangeAction, Reconciler, command_from_spec
from identity.storage.paging import iterate_rows


def ensure_webhooks(
    build: Reconciler, path: str, organization: Organization | None, described: tuple[WebhookSpec, ...] | None
) -> None:
    """The webhooks of an organization; without one those of the instance. A secret that is not described stays."""
    if described is None:
        return
    if organization is not None:
        build.require("webhook.write", organization)
    webhooks, owner_id = build.services.webhooks, None if organization is None else organization.id
    rows = partial(iterate_rows, partial(build.storage.webhooks.page, owner_id))
    present = ExistingRows[Webhook](webhooks.kind_label, [] if build.create_all else rows())

    def name_of(webhook: Webhook | WebhookSpec) -> str:
        return f"{'instance' if organization is None else organization.primary_domain} / {webhook.name}"

    for number, spec in enumerate(described):
        webhook_path = f"{path}.webhooks[{number}]"
        webhook = build.ensure(
            webhook_path,
            name_of(spec),
            # The change is reported without the secret.
            spec.model_copy(update={"secret": None}),
            webhooks,
            ChangeWebhook,
            find=partial(present.find, spec),
            create=partial(
                webhooks.create,
                owner_id,
                command_from_spec(spec, CreateWebhook),
                principal=build.principal,
                secret=spec.secret or "",
                id=build.new_entity_id(spec),
            ),
        )
        if webhook is not None and spec.secret and not webhooks.has_secret(webhook, spec.secret):
            with build.collect_problems(webhook_path):
                webhooks.set_secret(webhook.id, spec.secret, principal=build.principal)
                build.record_change(ChangeAction.CHANGE, webhooks.kind_label, name_of(spec), "secret")
    build.prune_rows(
        f"{path}.webhooks",
        webhooks.kind_label,
        rows,
        key=lambda webhook: (webhook.id,),
        name=name_of,
        remove=lambda webhook: webhooks.remove(webhook.id, principal=build.principal),
    )
