"""The scope that puts a project into a token's audience (service description §2.7)."""

from collections.abc import Collection


class AudienceScope:
    """``urn:service:iam:org:project:id:<project id>:aud``, or the same in another namespace of the service."""

    #: Surrounds the project id in the scope, after a namespace.
    PROJECT_ID_INFIX = ":org:project:id:"
    SUFFIX = ":aud"
    #: Where the management API is, below the base URL: the address by which clients name the own project (RFC 8707).
    MANAGEMENT_PATH = "/management/v1"

    @classmethod
    def build(cls, project_id: str, namespace: str = "urn:service:iam") -> str:
        return f"{namespace}{cls.PROJECT_ID_INFIX}{project_id}{cls.SUFFIX}"

    @classmethod
    def find_project(cls, value: str, namespaces: Collection[str], own_project_id: str) -> str | None:
        """The project id in an audience scope of one of the namespaces; None for any other value. The last part of a
        namespace is an alias of the service's own project."""
        namespace, middle, rest = value.partition(cls.PROJECT_ID_INFIX)
        if not middle or not rest.endswith(cls.SUFFIX) or namespace not in namespaces:
            return None
        named = rest.removesuffix(cls.SUFFIX)
        return own_project_id if named == cls._own_project_alias(namespace) else named

    @classmethod
    def build_for_own_project(cls, namespace: str) -> str:
        """The scope of the service's own project, which needs no id."""
        return cls.build(cls._own_project_alias(namespace), namespace)

    @staticmethod
    def _own_project_alias(namespace: str) -> str:
        return namespace.rsplit(":", 2)[-2]
