"""Fields of identity providers."""

from identity.domain.messages import gettext_lazy as _
from identity.domain.upstream_providers import UpstreamAuthentication, UpstreamKind, UpstreamProvider
from identity.plugins.console.field_labels import FieldLabel, labelled_fields

_MORE = _("More settings")

UPSTREAM_PROVIDER_FIELDS = labelled_fields(
    UpstreamProvider,
    {
        "name": FieldLabel(_("Name"), _("Shown on the button with which people sign in there.")),
        "kind": FieldLabel(
            _("Kind"),
            value_labels={
                UpstreamKind.OPENID: _("OpenID provider"),
                UpstreamKind.GOOGLE: "Google",
                UpstreamKind.ENTRA: "Microsoft Entra",
                UpstreamKind.GITLAB: "GitLab",
                UpstreamKind.APPLE: "Apple",
                UpstreamKind.GITHUB: "GitHub",
                UpstreamKind.OKTA: "Okta",
                UpstreamKind.KEYCLOAK: "Keycloak",
            },
        ),
        "client_id": FieldLabel(_("Client id"), _("As registered with the provider.")),
        "issuer": FieldLabel(
            _("Issuer"),
            _(
                "The address by which the provider names itself, for example {example}.",
                example="https://login.example.com",
            ),
        ),
        "authentication": FieldLabel(
            _("Authentication method"),
            _("How this service authenticates at the provider."),
            section=_MORE,
            value_labels={
                UpstreamAuthentication.CLIENT_SECRET_BASIC: _("Client secret in the header"),
                UpstreamAuthentication.CLIENT_SECRET_POST: _("Client secret in the form"),
                UpstreamAuthentication.PRIVATE_KEY_JWT: _("Signed with the key of this service"),
            },
        ),
        "team_id": FieldLabel(_("Team id"), _("Of your Apple developer account."), section=_MORE),
        "key_id": FieldLabel(_("Key id"), _("Of the private key with which client secrets are signed."), section=_MORE),
        "scopes": FieldLabel(
            _("Scopes"), _("Scopes to request, separated by spaces. Leave empty for the default."), section=_MORE
        ),
        "claims": FieldLabel(
            _("Claims"),
            _(
                "Claims to read the profile from, one per line, if they differ from the standard "
                "ones. For example {example}",
                example="family_name = sn",
            ),
            section=_MORE,
        ),
        "create_accounts": FieldLabel(
            _("Create accounts"),
            _(
                "People who sign in there for the first time get an account here, if the rules of registration allow"
                " it."
            ),
            value_labels={
                True: _("People who sign in there for the first time get an account."),
                False: _("Only people who have linked their account can sign in there."),
            },
        ),
        "trust_email": FieldLabel(
            _("Trust email addresses"),
            _(
                "An address verified by the provider counts as verified here if its domain is one "
                "that the organization has verified. It also matches the account of a person who has "
                "not linked it yet."
            ),
            value_labels={
                True: _("Verified addresses in the organization's proven domains count here."),
                False: _("Addresses from this provider are unconfirmed."),
            },
        ),
        "by_domain": FieldLabel(
            _("Go there directly"),
            _(
                "People of the organization are sent there directly when they enter a login name of a "
                "verified domain, or when an application asks for the organization's users."
            ),
            value_labels={
                True: _("People of the organization are sent there directly."),
                False: _("People choose it with a button."),
            },
        ),
        "trust_methods": FieldLabel(
            _("Trust authentication methods"),
            _("The provider's report of how a user signed in there counts here, including second factors."),
            section=_MORE,
            value_labels={
                True: _("How the user signed in at the provider counts here."),
                False: _("Second factors are requested here."),
            },
        ),
        "instance_managed": FieldLabel(
            _("Managed by the instance"),
            _(
                "Only instance administrators can change it. People with a role at the instance can sign in only at"
                " such providers."
            ),
            section=_MORE,
            value_labels={
                True: _(
                    "Only instance administrators can change it. People with a role at the instance can sign in with"
                    " it."
                ),
                False: _(
                    "Managers of the organization can change it. People with a role at the instance cannot sign in"
                    " with it."
                ),
            },
        ),
        "sign_out_there": FieldLabel(
            _("Sign out there"),
            _("People who sign out here are sent there to sign out too, if the provider has a page for it."),
            section=_MORE,
            value_labels={
                True: _("Signing out here also signs out at the provider."),
                False: _("Signing out here ends only this session."),
            },
        ),
        "identity_assertion_clients": FieldLabel(
            _("Identity assertions"),
            _(
                "Applications that get tokens for assertions of this provider (ID-JAG): one client id per line, and"
                " after it the addresses of APIs to which the tokens are limited. For example {example}",
                example="CLIENT_ID https://api.example.com",
            ),
            section=_MORE,
        ),
        "everywhere": FieldLabel(
            _("For all organizations"),
            _("People of every organization can sign in there."),
            value_labels={True: _("For people of all organizations."), False: ""},
        ),
    },
)
