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
        "client_id": FieldLabel(
            gettext_lazy("Client id"), gettext_lazy("As the provider has registered this service.")
        ),
        "issuer": FieldLabel(
            gettext_lazy("Issuer"),
            gettext_lazy(
                "For example {example}. Empty for Google, Apple, gitlab.com and github.com.",
                example="https://login.example.com",
            ),
        ),
        "authentication": FieldLabel(
            gettext_lazy("Authentication method"),
            gettext_lazy("How this service proves there who it is."),
            section=_MORE,
            value_labels={
                UpstreamAuthentication.CLIENT_SECRET_BASIC: gettext_lazy("Client secret in the header"),
                UpstreamAuthentication.CLIENT_SECRET_POST: gettext_lazy("Client secret in the form"),
                UpstreamAuthentication.PRIVATE_KEY_JWT: gettext_lazy("Signed with the key of this service"),
            },
        ),
        "team_id": FieldLabel(gettext_lazy("Team id"), gettext_lazy("For Apple alone."), section=_MORE),
        "key_id": FieldLabel(
            gettext_lazy("Key id"),
            gettext_lazy("For Apple alone: of the key that stands in place of a client secret."),
            section=_MORE,
        ),
        "scopes": FieldLabel(
            gettext_lazy("Scopes"),
            gettext_lazy("What is asked for, separated by spaces. Empty for what is usual."),
            section=_MORE,
        ),
        "claims": FieldLabel(
            gettext_lazy("Claims"),
            gettext_lazy(
                "Where the profile comes from, one a line, if not from the usual claim. For example {example}",
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
                True: gettext_lazy("Whoever signs in there for the first time gets an account."),
                False: gettext_lazy("Only people who have linked their account can sign in there."),
            },
        ),
        "trust_email": FieldLabel(
            gettext_lazy("Trust email addresses"),
            gettext_lazy(
                "An address that the provider has verified counts as verified here, if it is of a domain that the"
                " organization has proven. Then it also finds the account of a person who has not linked it yet."
            ),
            value_labels={
                True: gettext_lazy("Verified addresses in the organization's proven domains count here."),
                False: gettext_lazy("Addresses from there are unconfirmed."),
            },
        ),
        "by_domain": FieldLabel(
            gettext_lazy("Go there at once"),
            gettext_lazy(
                "People of the organization are sent there without being asked: whoever enters a login name of a domain"
                " that it has proven, and wherever an application asks for its people."
            ),
            value_labels={
                True: gettext_lazy("People of the organization are sent there without being asked."),
                False: gettext_lazy("People choose it with its button."),
            },
        ),
        "trust_methods": FieldLabel(
            gettext_lazy("Trust authentication methods"),
            gettext_lazy("What the provider says of how somebody signed in there counts here, second factors too."),
            section=_MORE,
            value_labels={
                True: gettext_lazy("How somebody signed in there counts here."),
                False: gettext_lazy("Factors are asked for here."),
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
            gettext_lazy("Whoever signs out here is sent there to sign out too, where the provider has a page for it."),
            section=_MORE,
            value_labels={
                True: gettext_lazy("Signing out here signs out there, too."),
                False: gettext_lazy("Signing out here ends this alone."),
            },
        ),
        "everywhere": FieldLabel(
            gettext_lazy("For all organizations"),
            gettext_lazy("People of every organization can sign in there."),
            value_labels={True: gettext_lazy("For people of all organizations."), False: ""},
        ),
    },
)
