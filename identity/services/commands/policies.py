"""Commands that change policies."""

from dataclasses import replace

from identity.domain.policies import Policy
from identity.services.commands import Command
from identity.services.commands.entity_fields import with_update_fields


@with_update_fields(Policy)
class ChangePolicy(Command):
    """Change the rules that are set; null inherits from the level above. Durations are in seconds."""

    def apply_to(self, policy: Policy) -> Policy:
        return replace(policy, **{name: getattr(self, name) for name in self.model_fields_set})
