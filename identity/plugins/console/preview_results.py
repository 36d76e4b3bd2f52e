"""The result of a token preview, as ``token_preview_result.html`` shows it."""

import json
from collections.abc import Mapping
from functools import partial

from identity.domain.messages import gettext_lazy as _
from identity.domain.users import TokenFormat
from identity.plugins.console.console_page import ConsolePage
from identity.plugins.console.fields.applications import GRANT_TYPE_DESCRIPTIONS
from identity.provider.claim_reasons import ClaimsCarrier
from identity.provider.token_preview import PreviewedClaims, TokenPreviewResult

SCOPE_FIELD = "scope"

_CARRIER_TITLES = {
    ClaimsCarrier.CODE: _("Code"),
    ClaimsCarrier.ACCESS_TOKEN: _("Access token"),
    ClaimsCarrier.ID_TOKEN: _("ID token"),
    ClaimsCarrier.REFRESH_TOKEN: _("Refresh token"),
    ClaimsCarrier.USERINFO: _("Answer of userinfo"),
    ClaimsCarrier.INTROSPECTION: _("Answer of introspection"),
}
_CARRIER_LEADS = {
    ClaimsCarrier.CODE: _("The application exchanges it for the tokens below, once."),
    ClaimsCarrier.REFRESH_TOKEN: _(
        "Carries no readable data; it can be exchanged for new tokens until it is unused for too long."
    ),
    ClaimsCarrier.USERINFO: _("What the access token opens for the application."),
    ClaimsCarrier.INTROSPECTION: _("What an API in the audience learns."),
}
_OPAQUE = _("Opaque: it carries no readable data. Userinfo and introspection return what it stands for.")
_JWT = _("JWT: every recipient can read it.")


def claims_lead(carried: PreviewedClaims) -> str:
    """What the token is for; empty if there is nothing to explain."""
    if carried.format is not None:
        return _JWT if carried.format is TokenFormat.JWT else _OPAQUE
    return _CARRIER_LEADS.get(carried.carrier, "")


def preview_variables(page: ConsolePage, preview: TokenPreviewResult | None) -> Mapping[str, object]:
    """What ``token_preview_result.html`` shows; nothing without a preview."""
    return {
        "ways": () if preview is None else preview.grant_previews,
        "untold": () if preview is None else preview.unsupported_grant_types,
        "grant_types": GRANT_TYPE_DESCRIPTIONS,
        "titles": _CARRIER_TITLES,
        "lead_of": claims_lead,
        "text": partial(json.dumps, ensure_ascii=False),
        "said": page.translate,
    }
