"""Fields of service users."""

from collections.abc import Sequence
from typing import Any

from identity.domain.messages import gettext_lazy as _
from identity.domain.signature_algorithms import SignatureAlgorithm
from identity.domain.users import Agent, ServiceUser, TokenFormat
from identity.plugins.console.field_labels import FieldLabel, Options, labelled_fields

#: The grant whose assertions service users sign.
_JWT_BEARER = "urn:ietf:params:oauth:grant-type:jwt-bearer"

ACCESS_TOKEN_TYPE_LABEL = FieldLabel(
    _("Access token type"),
    _("An opaque token can be checked only by introspection. A JWT can also be checked locally."),
    value_labels={TokenFormat.OPAQUE: _("Opaque"), TokenFormat.JWT: _("JWT")},
)


def algorithm_options(field: str, absent: str) -> Options:
    """The algorithms that have an active key, and the one that is stored."""

    def options(page: Any) -> Sequence[Sequence[object]]:
        stored = getattr(page.stored, field, None)
        offered = page.services.signing_keys.active_algorithms()
        chosen = [stored] if stored is not None and stored not in offered else []
        return [("", page.translate(absent)), *((str(name), str(name)) for name in (*offered, *chosen))]

    return options


RESPONSE_ALGORITHM_LABEL = FieldLabel(
    _("Algorithm of tokens"),
    _("ID tokens and JWT access tokens are signed with it."),
    value_labels={None: _("The service’s default"), **{name: str(name) for name in SignatureAlgorithm}},
    options=algorithm_options("id_token_signed_response_alg", _("The service’s default")),
)

SERVICE_USER_FIELDS = labelled_fields(
    ServiceUser,
    {
        "user_name": FieldLabel(
            _("User name"), _("Unique in the organization, without spaces. For example {example}", example="ci-runner")
        ),
        "display_name": FieldLabel(
            _("Display name"), _("Shown in lists and in audit events."), required_message=_("Enter a display name.")
        ),
        "description": FieldLabel(_("Description"), _("What the program does, and whom to ask about it.")),
        "access_token_type": ACCESS_TOKEN_TYPE_LABEL,
        "id_token_signed_response_alg": RESPONSE_ALGORITHM_LABEL,
        "jwks_uri": FieldLabel(
            _("Address of the public keys"),
            _("A JWK set that the program publishes, to replace keys without a change here. Empty for none."),
            is_available=lambda page: _JWT_BEARER in page.discovery_document.get("grant_types_supported", ()),
        ),
    },
)

AGENT_FIELDS = labelled_fields(
    Agent,
    {
        **SERVICE_USER_FIELDS,
        "may_manage": FieldLabel(
            _("May use the management API"),
            _("With its own manager roles, as far as its owner has them."),
            value_labels={True: _("Yes"), False: _("No")},
        ),
    },
)
