"""Apply a desired state to an instance."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from identity.domain.permissions import Resource
from identity.domain.service_user_keys import KeyFile
from identity.services.access_control import Principal
from identity.services.commands.desired_state import DesiredState
from identity.services.commands.documents import decode_document
from identity.services.container import Services
from identity.services.desired_state.mail_server import ensure_mail_server
from identity.services.desired_state.mail_texts import ensure_mail_texts
from identity.services.desired_state.managers import ensure_managers
from identity.services.desired_state.organizations import ensure_organizations, prune_organizations
from identity.services.desired_state.policies import ensure_policy
from identity.services.desired_state.reconciler import Reconciler, RegisteredCredentials, StateChange
from identity.services.desired_state.webhooks import ensure_webhooks
from identity.services.policies import INSTANCE_OWNER_ID as OF_INSTANCE


@dataclass(frozen=True, slots=True, kw_only=True)
class ApplyResult:
    """All changes, all described applications, and the only copies of new keys by login name."""

    state_changes: Sequence[StateChange]
    applications: Sequence[RegisteredCredentials]
    key_files: Sequence[tuple[str, KeyFile]]


def parse_desired_state(values: Mapping[str, object]) -> DesiredState:
    """The valid part of these values; `apply_desired_state` reports all problems. Raises Invalid with a message for
    each invalid path if nothing is valid."""
    return decode_document(DesiredState, values)


def apply_desired_state(
    services: Services, state: DesiredState, *, principal: Principal, prune: bool = False, with_secrets: bool = False
) -> ApplyResult:
    """Bring the instance to the described state; only differences are written.

    ``prune`` removes entities that are missing from the described lists. ``with_secrets`` gives each described
    application that can have a secret and has none a secret. For a dry run, abort the transaction.

    Raises Invalid with a message for each invalid path, such as ``organizations[0].users[2].user_name``: do not
    commit then. Raises Denied."""
    build = Reconciler(services, state.parse_report, principal=principal, prune=prune, with_secrets=with_secrets)
    if state.instance is not None:
        # First, because the policies of organizations depend on it.
        ensure_policy(build, "instance", state.instance.policy, OF_INSTANCE, "the instance")
        ensure_mail_server(build, "instance", state.instance.mail_server)
        ensure_mail_texts(build, "instance", "the instance", None, state.instance.mail_texts)
    if state.organizations is not None:
        prune_organizations(build, "organizations")
        described = [(f"organizations[{number}]", spec) for number, spec in enumerate(state.organizations)]
        ensure_organizations(build, described)
    if state.instance is not None:
        ensure_webhooks(build, "instance", None, state.instance.webhooks)
        ensure_managers(build, "instance", state.instance.managers, Resource.INSTANCE, None, "the instance")
    build.finish()
    return ApplyResult(
        state_changes=tuple(build.state_changes), applications=build.applications, key_files=build.key_files
    )
