"""The scope that puts a project into a token's audience (service description §2.7)."""

#: What stands around the project's id, behind a namespace.
PROJECT_OF = ":org:project:id:"
AUDIENCE_END = ":aud"


def audience_scope(project_id: str, namespace: str = "urn:service:iam") -> str:
    """``urn:service:iam:org:project:id:<project id>:aud``, or the same in another namespace of the service."""
    return f"{namespace}{PROJECT_OF}{project_id}{AUDIENCE_END}"
