"""Addresses and names that pages and requests share."""

ROLE_NAME = "ORG_USER_PROVISIONER"


def organization_url(base_url: str, organization_id: str) -> str:
    """The base URL of SCIM for an organization."""
    return f"{base_url}/scim/v2/{organization_id}"


def console_path(organization_id: str) -> str:
    """The organization's page in the console."""
    return f"/console/organizations/{organization_id}"
