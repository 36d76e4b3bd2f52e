"""Names in the OpenAPI document that generated clients depend on."""

from identity.plugins.management.openapi import build_document
from identity.plugins.management.operation_table import OPERATION_GROUPS

#: Renaming a class must not rename its schema: see _COMPONENT_NAMES in json_schemas.py.
SCHEMA_NAMES = """
    AccessEntry AccessEntryList AccessKind AccessProblem Actor ActorKind AddAttributeMapping AddDomain
    AddFederatedCredential AddGroup AddGroupGrant AddGroupManager AddGroupMapping AddGroupMember AddManager
    AddPersonalAccessToken AddProjectGrant AddProjectRole AddServiceUserKey Address Application ApplicationList
    ApplicationOrigin ApplicationRequest ApplicationRequestList ApplicationSecret ApplicationSecretList
    ApplicationType Attribute AttributeAccess AttributeList AttributeMapping AttributeMappingList AttributeType
    AuditEvent AuditEventList Branding CallerFirstSteps Carried Carrier ChangeAddress ChangeApplication
    ChangeAttribute ChangeAttributeMapping ChangeBranding ChangeGroup ChangeGroupGrant ChangeGroupManager
    ChangeGroupMapping ChangeGroupMember ChangeHumanUser ChangeMailServer ChangeMailTexts ChangeManager
    ChangeOrganization ChangePolicy ChangeProject ChangeProjectGrant ChangeProjectRole ChangeServiceUser
    ChangeUpstreamProvider ChangeUserGrant ChangeWebhook CheckResult Claim ClientRegistration ClientTokens
    ConnectedDevice Connection ConnectionList ConsentDefault ConsentRule CreateAttribute CreateOrganization
    CreateProject CreateServiceUser CreateUpstreamProvider CreateWebhook DailyFigures DatabaseFacts DeliveryProblem
    DescribedApplication DescribedAttribute DescribedAttributeMapping DescribedDirectory
    DescribedFederatedCredential DescribedGroup DescribedGroupGrant DescribedGroupManager DescribedGroupMapping
    DescribedGroupMember DescribedKey DescribedManager DescribedOrganization DescribedProject DescribedProjectGrant
    DescribedServiceUser DescribedUpstreamProvider DescribedUser DescribedUserGrant DescribedWebhook Directory
    DirectoryList DirectoryServer DirectoryTest Domain DomainList EmailVerifier EndingKind EndingRole Error Expiring
    ExpiringKind ExportedOrganization Factor FactorList FederatedCredential FederatedCredentialList Figures
    FirstSteps GrantOfProject GrantToUser Group GroupGrant GroupGrantList GroupList GroupManager GroupManagerList
    GroupMapping GroupMappingList GroupMember GroupMemberList Held HeldRole HeldRoles HitKind Initial Instance
    InviteHumanUser InvitedUser IssuerKind KeyFile KeyState LeftOut LegalHold LegalHoldList Level MailKind
    MailOutcome MailServer MailTexts Manager ManagerList Me NewApplicationSecret NewKey NewPersonalAccessToken
    NewServiceUserKey NewServiceUserSecret NewWebhook Nothing OneTimePassword Organization OrganizationDocument
    OrganizationList OrganizationOverview OtherManagers Overview OwnMailText OwnOrganization PasswordLink
    PersonalAccessToken PersonalAccessTokenList PlaceLegalHold Plugin PluginList Policy PolicyEffect Project
    ProjectGrant ProjectGrantList ProjectList ProjectRole ProjectRoleList Proof QueuedMail QueuedMailList
    QueuedMailState Refusal Refused RegisterApplication RegisteredApplication RegistrationRule Result RevokedAccess
    Role RoleList RotateSigningKey RotateWebhookSecret RuleSource Rules SearchHit SearchHitList SecondFactor
    SecurityProfile SendResult SendTestMail SentMail SentMailList ServiceUser ServiceUserKey ServiceUserKeyList
    ServiceUserList ServiceUserSecret ServiceUserSecretList Session SessionList Setting SignatureAlgorithm
    SigningKey SigningKeyList SmtpSecurity Source SparedUser StartUserImport StoppedAgents SubjectType SystemReport
    TokenFormat TokenPreview UpstreamAuthentication UpstreamKind UpstreamProvider UpstreamProviderList User
    UserGrant UserGrantList UserImport UserImportList UserImportState UserList UserState Way Webhook WebhookDelivery
    WebhookDeliveryList WebhookList
"""


def test_schema_names_stay() -> None:
    document = build_document("https://id.example", OPERATION_GROUPS)
    assert sorted(document["components"]["schemas"]) == SCHEMA_NAMES.split()
