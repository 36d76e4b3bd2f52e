"""What the account's pages tell password managers about passkeys (signals, WebAuthn Level 3 §5.1.10)."""

import json
from collections.abc import Iterator

from markupsafe import Markup

from identity.api.pages import SignedInPage
from identity.plugins.passkeys.factor import PasskeyFactor
from identity.plugins.passkeys.passkey import Passkey


def account_signals(page: SignedInPage) -> Iterator[Markup]:
    """The user's passkeys and names, for the script; nothing for a browser that is not the user's."""
    if page.signed_in_account.session.is_impersonated:
        return
    services = page.request.services
    enrolments = services.factors.list_enrolments(page.subject.user.id, PasskeyFactor.name)
    passkeys = [Passkey.from_json(enrolment.value) for enrolment in enrolments]
    details = page.request.registry.passkeys.signal_details(page.subject, passkeys)
    variables = {"details": json.dumps(details)}
    yield page.renderer.render_fragment(
        page.request, "passkeys/account_signals.html", variables, language=page.language
    )
