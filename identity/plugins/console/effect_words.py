"""What falls with a thing, in words."""

from identity.domain.effects import Effects
from identity.domain.words import Message, say_many


def effect_words(effects: Effects) -> list[Message]:
    """One line a kind, with its number; kinds of which there are none are left out."""
    lines = (
        say_many("{n} user", "{n} users", effects.users),
        say_many("{n} service user", "{n} service users", effects.service_users),
        say_many("{n} project", "{n} projects", effects.projects),
        say_many("{n} application", "{n} applications", effects.applications),
        say_many("{n} role", "{n} roles", effects.roles),
        say_many("{n} project grant", "{n} project grants", effects.project_grants),
        say_many("{n} user grant", "{n} user grants", effects.user_grants),
        say_many("{n} manager role", "{n} manager roles", effects.managers),
        say_many("{n} key", "{n} keys", effects.keys),
        say_many("{n} client secret", "{n} client secrets", effects.secrets),
        say_many("{n} personal access token", "{n} personal access tokens", effects.personal_access_tokens),
        say_many("{n} session", "{n} sessions", effects.sessions),
        say_many("{n} live token", "{n} live tokens", effects.live_tokens),
    )
    return [line for line in lines if line.values["n"]]
