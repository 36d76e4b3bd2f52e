"""Labels for the impact of a deletion."""

from identity.domain.deletion_impact import DeletionImpact
from identity.domain.messages import Message, ngettext_lazy


def impact_labels(effects: DeletionImpact) -> list[Message]:
    """One line with a count for each affected kind."""
    lines = (
        ngettext_lazy("{n} user", "{n} users", effects.users),
        ngettext_lazy("{n} service user", "{n} service users", effects.service_users),
        ngettext_lazy("{n} project", "{n} projects", effects.projects),
        ngettext_lazy("{n} application", "{n} applications", effects.applications),
        ngettext_lazy("{n} role", "{n} roles", effects.roles),
        ngettext_lazy("{n} project grant", "{n} project grants", effects.project_grants),
        ngettext_lazy("{n} user grant", "{n} user grants", effects.user_grants),
        ngettext_lazy("{n} manager role", "{n} manager roles", effects.managers),
        ngettext_lazy("{n} key", "{n} keys", effects.keys),
        ngettext_lazy("{n} client secret", "{n} client secrets", effects.secrets),
        ngettext_lazy("{n} personal access token", "{n} personal access tokens", effects.personal_access_tokens),
        ngettext_lazy("{n} session", "{n} sessions", effects.sessions),
        ngettext_lazy("{n} live token", "{n} live tokens", effects.live_tokens),
    )
    return [line for line in lines if line.values["n"]]
