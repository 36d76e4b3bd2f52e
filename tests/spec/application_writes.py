"""Management API requests that change the applications of a project."""

#: Change → method, path, members.
WRITES: dict[str, tuple[str, str, object]] = {
    "register": ("POST", "/projects/{project}/applications", {"name": "Mine", "type": "api"}),
    "change": ("PATCH", "/applications/{client_id}", {"name": "Mine"}),
    "deactivate": ("POST", "/applications/{client_id}/deactivate", None),
    "reactivate": ("POST", "/applications/{client_id}/reactivate", None),
    "add a secret": ("POST", "/applications/{client_id}/secrets", {}),
    "end a secret": ("DELETE", "/applications/{client_id}/secrets/{secret}", None),
    "delete": ("DELETE", "/applications/{client_id}", None),
}
