"""What falls with a thing, in words."""

from identity.domain.effects import Effects
from identity.plugins.console.console_page import ConsolePage


def effect_words(effects: Effects, page: ConsolePage) -> list[str]:
    """One line a kind, with its number; kinds of which there are none are left out."""
    tn = page.words.tn
    lines = (
        (effects.users, tn("{n} user", "{n} users", effects.users)),
        (effects.service_users, tn("{n} service user", "{n} service users", effects.service_users)),
        (effects.projects, tn("{n} project", "{n} projects", effects.projects)),
        (effects.applications, tn("{n} application", "{n} applications", effects.applications)),
        (effects.roles, tn("{n} role", "{n} roles", effects.roles)),
        (effects.project_grants, tn("{n} project grant", "{n} project grants", effects.project_grants)),
        (effects.user_grants, tn("{n} user grant", "{n} user grants", effects.user_grants)),
        (effects.managers, tn("{n} manager role", "{n} manager roles", effects.managers)),
        (effects.keys, tn("{n} key", "{n} keys", effects.keys)),
        (effects.secrets, tn("{n} client secret", "{n} client secrets", effects.secrets)),
        (
            effects.personal_access_tokens,
            tn("{n} personal access token", "{n} personal access tokens", effects.personal_access_tokens),
        ),
        (effects.sessions, tn("{n} session", "{n} sessions", effects.sessions)),
        (effects.live_tokens, tn("{n} live token", "{n} live tokens", effects.live_tokens)),
    )
    return [line for number, line in lines if number]
