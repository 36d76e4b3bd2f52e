"""Entities: the stored data as frozen dataclasses, and their validation errors."""

from identity.domain.applications import Application, ApplicationClient, ApplicationOrigin, ApplicationType
from identity.domain.email_addresses import email_domain
from identity.domain.errors import Conflict, Denied, DomainError, Invalid, NotFound
from identity.domain.federated_credentials import FederatedCredential
from identity.domain.managers import ManagerRole
from identity.domain.names import display_name_error, domain_name_error
from identity.domain.organizations import Organization
from identity.domain.permissions import ManagerLevel, Resource
from identity.domain.projects import ClientRegistration, Project
from identity.domain.service_user_keys import ServiceUserKey
from identity.domain.upstream_providers import ClaimMapping, UpstreamAuthentication, UpstreamKind, UpstreamProvider
from identity.domain.users import EmailVerifier, HumanUser, Profile, ServiceUser, Subject, User

__all__ = [
    "Application",
    "ApplicationClient",
    "ApplicationOrigin",
    "ApplicationType",
    "ClaimMapping",
    "ClientRegistration",
    "Conflict",
    "Denied",
    "DomainError",
    "EmailVerifier",
    "FederatedCredential",
    "HumanUser",
    "Invalid",
    "ManagerLevel",
    "ManagerRole",
    "NotFound",
    "Organization",
    "Profile",
    "Project",
    "Resource",
    "ServiceUser",
    "ServiceUserKey",
    "Subject",
    "UpstreamAuthentication",
    "UpstreamKind",
    "UpstreamProvider",
    "User",
    "display_name_error",
    "domain_name_error",
    "email_domain",
]
