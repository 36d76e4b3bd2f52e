"""Names in the OpenAPI document that generated clients depend on."""

from identity.plugins.management.openapi import build_document
from identity.plugins.management.operation_table import OPERATION_GROUPS

#: Renaming a class must not rename its schema: see _COMPONENT_NAMES in json_schemas.py.
SCHEMA_NAMES = """
    Actor ActorKind AddDomain AddManager AddPersonalAccessToken AddProjectGrant AddProjectRole AddServiceUserKey
    Address Application ApplicationList ApplicationSecret ApplicationSecretList ApplicationType AuditEvent
    AuditEventList Branding Carried Carrier ChangeAddress ChangeApplication ChangeBranding ChangeHumanUser
    ChangeManager ChangeOrganization ChangePolicy ChangeProject ChangeProjectGrant ChangeProjectRole
    ChangeServiceUser ChangeUpstreamProvider ChangeUserGrant Claim Connection ConnectionList ConsentDefault
    ConsentRule CreateOrganization CreateProject CreateServiceUser CreateUpstreamProvider DescribedApplication
    DescribedKey DescribedManager DescribedOrganization DescribedProject DescribedProjectGrant
    DescribedServiceUser DescribedUpstreamProvider DescribedUser DescribedUserGrant Domain DomainList
    EmailVerifier Error Expiring ExpiringKind ExportedOrganization Factor FactorList FirstSteps GrantOfProject
    GrantToUser Held HeldRoles Initial Instance InviteHumanUser InvitedUser KeyFile KeyState LeftOut LegalHold
    LegalHoldList Level Manager ManagerList Me NewApplicationSecret NewKey NewPersonalAccessToken
    NewServiceUserKey NewServiceUserSecret Nothing OneTimePassword Organization OrganizationDocument
    OrganizationList OrganizationOverview OtherManagers Overview OwnOrganization PasswordLink
    PersonalAccessToken PersonalAccessTokenList PlaceLegalHold Policy PolicyEffect Project ProjectGrant
    ProjectGrantList ProjectList ProjectRole ProjectRoleList Proof Refusal Refused RegisterApplication
    RegisteredApplication RegistrationRule Result Role RoleList RotateSigningKey RuleSource Rules SecondFactor
    ServiceUser ServiceUserKey ServiceUserKeyList ServiceUserList ServiceUserSecret ServiceUserSecretList
    Session SessionList SigningKey SigningKeyList Source TokenFormat TokenPreview UpstreamAuthentication
    UpstreamKind UpstreamProvider UpstreamProviderList User UserGrant UserGrantList UserList UserState Way
"""


def test_schema_names_stay() -> None:
    document = build_document("https://id.example", OPERATION_GROUPS)
    assert sorted(document["components"]["schemas"]) == SCHEMA_NAMES.split()
