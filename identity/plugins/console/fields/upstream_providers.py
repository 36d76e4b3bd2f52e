"""Fields of identity providers."""

from identity.domain.messages import gettext_lazy
from identity.domain.upstream_providers import UpstreamAuthentication, UpstreamKind, UpstreamProvider
from identity.plugins.console.field_labels import FieldLabel, labelled_fields

_MORE = gettext_lazy("More settings")

UPSTREAM_PROVIDER_FIELDS = labelled_fields(
    UpstreamProvider,
    {
        "name": FieldLabel(gettext_lazy("Name"), gettext_lazy("Shown on the button with which people sign in there.")),
        "kind": FieldLabel(
            gettext_lazy("Kind"),
            value_labels={
                UpstreamKind.OPENID: gettext_lazy("OpenID provider"),
                UpstreamKind.GOOGLE: "Google",
                UpstreamKind.ENTRA: "Microsoft Entra",
                UpstreamKind.GITLAB: "GitLab",
                UpstreamKind.APPLE: "Apple",
                UpstreamKind.GITHUB: "GitHub",
            },
        ),
        "client_id": FieldLabel(gettext_lazy("Client id"), gettext_lazy("As registered with the provider.")),
        "issuer": FieldLabel(
            gettext_lazy("Issuer"),
            gettext_lazy(
                "For example {example}. Empty for Google, Apple, gitlab.com and github.com.",
                example="https://login.example.com",
            ),
        ),
        "authentication": FieldLabel(
            gettext_lazy("Authentication method"),
            gettext_lazy("How this service authenticates at the provider."),
            section=_MORE,
            value_labels={
                UpstreamAuthentication.CLIENT_SECRET_BASIC: gettext_lazy("Client secret in the header"),
                UpstreamAuthentication.CLIENT_SECRET_POST: gettext_lazy("Client secret in the form"),
                UpstreamAuthentication.PRIVATE_KEY_JWT: gettext_lazy("Signed with the key of this service"),
            },
        ),
        "team_id": FieldLabel(gettext_lazy("Team id"), gettext_lazy("Apple only."), section=_MORE),
        "key_id": FieldLabel(
            gettext_lazy("Key id"),
            gettext_lazy("Apple only: the id of the key that replaces the client secret."),
            section=_MORE,
        ),
        "scopes": FieldLabel(
            gettext_lazy("Scopes"),
            gettext_lazy("Scopes to request, separated by spaces. Leave empty for the default."),
            section=_MORE,
        ),
        "claims": FieldLabel(
            gettext_lazy("Claims"),
            gettext_lazy(
                "Claims to read the profile from, one per line, if they differ from the standard "
                "ones. For example {example}",
                example="family_name = sn",
            ),
            section=_MORE,
        ),
        "create_accounts": FieldLabel(
            gettext_lazy("Create accounts"),
            gettext_lazy(
                "People who sign in there for the first time get an account here, if the rules of registration allow"
                " it."
            ),
            value_labels={
                True: gettext_lazy("People who sign in there for the first time get an account."),
                False: gettext_lazy("Only people who have linked their account can sign in there."),
            },
        ),
        "trust_email": FieldLabel(
            gettext_lazy("Trust email addresses"),
            gettext_lazy(
                "An address verified by the provider counts as verified here if its domain is one "
                "that the organization has verified. It also matches the account of a person who has "
                "not linked it yet."
            ),
            value_labels={
                True: gettext_lazy("Verified addresses in the organization's proven domains count here."),
                False: gettext_lazy("Addresses from this provider are unconfirmed."),
            },
        ),
        "by_domain": FieldLabel(
            gettext_lazy("Go there directly"),
            gettext_lazy(
                "People of the organization are sent there directly when they enter a login name of a "
                "verified domain, or when an application asks for the organization's users."
            ),
            value_labels={
                True: gettext_lazy("People of the organization are sent there directly."),
                False: gettext_lazy("People choose it with a button."),
            },
        ),
        "trust_methods": FieldLabel(
            gettext_lazy("Trust authentication methods"),
            gettext_lazy("The provider's report of how a user signed in there counts here, including second factors."),
            section=_MORE,
            value_labels={
                True: gettext_lazy("How the user signed in at the provider counts here."),
                False: gettext_lazy("Second factors are requested here."),
            },
        ),
        "instance_managed": FieldLabel(
            gettext_lazy("Managed by the instance"),
            gettext_lazy(
                "Only instance administrators can change it. People with a role at the instance can sign in only at"
                " such providers."
            ),
            section=_MORE,
            value_labels={
                True: gettext_lazy(
                    "Only instance administrators can change it. People with a role at the instance can sign in with"
                    " it."
                ),
                False: gettext_lazy(
                    "Managers of the organization can change it. People with a role at the instance cannot sign in"
                    " with it."
                ),
            },
        ),
        "sign_out_there": FieldLabel(
            gettext_lazy("Sign out there"),
            gettext_lazy("People who sign out here are sent there to sign out too, if the provider has a page for it."),
            section=_MORE,
            value_labels={
                True: gettext_lazy("Signing out here also signs out at the provider."),
                False: gettext_lazy("Signing out here ends only this session."),
            },
        ),
        "everywhere": FieldLabel(
            gettext_lazy("For all organizations"),
            gettext_lazy("People of every organization can sign in there."),
            value_labels={True: gettext_lazy("For people of all organizations."), False: ""},
        ),
    },
)
