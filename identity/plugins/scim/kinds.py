"""Kinds of the plugin's records."""

#: The resource of a user as it was sent, and what finds it.
USER_KIND, USER_NAME_KIND = "user", "user_name"
#: A group's externalId, and the memberships that SCIM added.
GROUP_KIND, MEMBER_KIND = "group", "member"
#: Finds a resource of either type by its externalId.
EXTERNAL_ID_KIND = "external_id"
