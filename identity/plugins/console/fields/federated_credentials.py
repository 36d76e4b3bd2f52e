"""Fields of federated credentials, and templates for known issuers."""

from collections.abc import Mapping
from dataclasses import dataclass

from identity.domain.federated_credentials import FederatedCredential, IssuerKind
from identity.domain.messages import gettext_lazy as _
from identity.plugins.console.field_labels import FieldLabel, labelled_fields

ISSUER_KIND_LABELS = {
    IssuerKind.OIDC: _("OpenID Connect: the issuer's discovery document names its keys"),
    IssuerKind.JWKS: _("Keys: entered below, or at an address"),
    IssuerKind.SPIFFE: _("SPIFFE: a trust domain and the address of its bundle"),
}

FEDERATED_CREDENTIAL_FIELDS = labelled_fields(
    FederatedCredential,
    {
        "name": FieldLabel(
            _("Name"),
            _("What runs there. For example {example}", example="Deployment of the shop"),
            required_message=_("Enter a name that says what runs there."),
        ),
        "kind": FieldLabel(_("Kind of issuer"), value_labels=ISSUER_KIND_LABELS),
        "issuer": FieldLabel(_("Issuer"), _("The claim iss of its tokens, character by character.")),
        "conditions": FieldLabel(
            _("Conditions"),
            _(
                "One per line, such as {example}. All must hold; one is about sub or an immutable id. A value that "
                "ends in :* or /* is a prefix.",
                example="sub = repo:acme/app:ref:refs/heads/main",
            ),
        ),
        "jwks_uri": FieldLabel(_("Address of the keys"), _("A JWK set, or a SPIFFE bundle. Empty for OpenID Connect.")),
        "jwks": FieldLabel(_("Public keys"), _("A JWK set, if the issuer publishes none.")),
        "instance_managed": FieldLabel(
            _("Managed by the instance"),
            _("Service users with a role at the instance, and applications of the instance, need such a credential."),
            value_labels={True: _("Managed by the instance"), False: ""},
        ),
    },
)


@dataclass(frozen=True)
class IssuerTemplate:
    """Values of the form for a known issuer, with placeholders in capitals."""

    label: str
    issuer: str
    conditions: tuple[str, ...]
    kind: IssuerKind = IssuerKind.OIDC
    jwks_uri: str = ""


#: Names of products are the same in all languages.
ISSUER_TEMPLATES: Mapping[str, IssuerTemplate] = {
    "github": IssuerTemplate(
        "GitHub Actions",
        "https://token.actions.githubusercontent.com",
        ("sub = repo:OWNER/REPOSITORY:ref:refs/heads/main", "repository_id = ID"),
    ),
    "gitlab": IssuerTemplate(
        "GitLab",
        "https://gitlab.com",
        ("sub = project_path:GROUP/PROJECT:ref_type:branch:ref:main", "project_id = ID"),
    ),
    "kubernetes": IssuerTemplate(
        "Kubernetes",
        "https://kubernetes.default.svc.cluster.local",
        ("sub = system:serviceaccount:NAMESPACE:NAME",),
        IssuerKind.JWKS,
    ),
    "spiffe": IssuerTemplate(
        "SPIFFE",
        "spiffe://example.org",
        ("sub = spiffe://example.org/WORKLOAD",),
        IssuerKind.SPIFFE,
        "https://spire.example.org/bundle",
    ),
    "aws": IssuerTemplate(
        "AWS (EKS)",
        "https://oidc.eks.REGION.amazonaws.com/id/ID",
        ("sub = system:serviceaccount:NAMESPACE:NAME",),
    ),
    "google": IssuerTemplate(
        "Google Cloud", "https://accounts.google.com", ("sub = UNIQUE-ID-OF-THE-SERVICE-ACCOUNT",)
    ),
}
