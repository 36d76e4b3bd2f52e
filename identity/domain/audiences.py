"""The scope that puts a project into a token's audience (service description §2.7)."""

#: Surrounds the project id in the scope, after a namespace.
PROJECT_ID_INFIX = ":org:project:id:"
AUDIENCE_SUFFIX = ":aud"


def audience_scope(project_id: str, namespace: str = "urn:service:iam") -> str:
    """``urn:service:iam:org:project:id:<project id>:aud``, or the same in another namespace of the service."""
    return f"{namespace}{PROJECT_ID_INFIX}{project_id}{AUDIENCE_SUFFIX}"
