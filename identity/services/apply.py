"""Apply: an instance brought to a described state."""

from collections.abc import Mapping
from dataclasses import dataclass

from identity.domain.permissions import INSTANCE
from identity.domain.service_user_keys import KeyFile
from identity.services.access import Principal
from identity.services.bundle import Services
from identity.services.commands.descriptions import State
from identity.services.commands.documents import decode_document
from identity.services.described.build import Build, Change, Registered
from identity.services.described.managers import ensure_managers
from identity.services.described.organizations import ensure_organizations, prune_organizations
from identity.services.described.policies import ensure_policy
from identity.services.policies import INSTANCE as OF_INSTANCE


@dataclass(frozen=True, slots=True, kw_only=True)
class Applied:
    """What became different, all described applications, and the only copies of new keys by login name."""

    changes: tuple[Change, ...]
    applications: tuple[Registered, ...]
    key_files: tuple[tuple[str, KeyFile], ...]


def read_state(values: Mapping[str, object]) -> State:
    """The state that these values describe, as far as they can be read: `apply` tells all that is wrong.

    Raises Invalid with a sentence for each place that is wrong if nothing can be.
    """
    return decode_document(State, values)


def apply(
    services: Services, state: State, *, by: Principal, prune: bool = False, with_secrets: bool = False
) -> Applied:
    """Make the instance what is described; what is so already is left alone.

    With ``prune`` what stands in the described lists' place without being in them is removed. With ``with_secrets``
    each described application that could have a secret and has none gets one. To learn what would change, abort the
    transaction.

    Raises Invalid with a sentence for each place that does not fit, such as ``organizations[0].users[2].user_name``,
    and then nothing may be committed; Denied.
    """
    build = Build(services, state.reading, by=by, prune=prune, with_secrets=with_secrets)
    if state.instance is not None:
        # First: what organizations may say depends on it.
        ensure_policy(build, "instance", state.instance.policy, OF_INSTANCE, "the instance")
    if state.organizations is not None:
        prune_organizations(build, "organizations")
        described = [(f"organizations[{number}]", one) for number, one in enumerate(state.organizations)]
        ensure_organizations(build, described)
    if state.instance is not None:
        ensure_managers(build, "instance", state.instance.managers, INSTANCE, None, "the instance")
    build.finish()
    return Applied(
        changes=tuple(build.changes), applications=tuple(build.applications), key_files=tuple(build.key_files)
    )
