"""A client of SCIM for one organization, with the token of one service user."""

import json
from dataclasses import dataclass
from typing import Any

from identity.testing.response_checks import format_response
from identity.testing.service_test_client import bearer_headers
from identity.testing.world import ServiceUserProgram, World

USER_SCHEMA = "urn:ietf:params:scim:schemas:core:2.0:User"
ENTERPRISE_SCHEMA = "urn:ietf:params:scim:schemas:extension:enterprise:2.0:User"
GROUP_SCHEMA = "urn:ietf:params:scim:schemas:core:2.0:Group"
PATCH_SCHEMA = "urn:ietf:params:scim:api:messages:2.0:PatchOp"
ERROR_SCHEMA = "urn:ietf:params:scim:api:messages:2.0:Error"


@dataclass(frozen=True)
class ScimClient:
    """``organization_id`` is the one of the base URL."""

    world: World
    token: str
    organization_id: str

    @classmethod
    def for_program(cls, robot: ServiceUserProgram) -> "ScimClient":
        """With a personal access token of the service user, for its own organization."""
        return cls(robot.world, robot.world.make_personal_access_token(robot), robot.organization.id)

    @property
    def base_url(self) -> str:
        return f"{self.world.identity.settings.base_url}/scim/v2/{self.organization_id}"

    def ask(self, method: str, path: str, members: object = None, **headers: str) -> Any:
        """The response; If_Match="…" is sent as If-Match."""
        sent = bearer_headers(self.token) | {name.replace("_", "-"): value for name, value in headers.items()}
        body = b"" if members is None else json.dumps(members).encode()
        sent |= {"Content-Type": "application/scim+json"} if body else {}
        answer = self.world.client.request(method, self.base_url + path, headers=sent, body=body)
        assert answer.status_int < 500 or answer.status_int == 501, format_response(answer)
        return answer

    def get(self, path: str) -> Any:
        return self._members(self.ask("GET", path), 200)

    def create_user(self, user_name: str, **members: Any) -> Any:
        body = {"schemas": [USER_SCHEMA], "userName": user_name, **members}
        return self._members(self.ask("POST", "/Users", body), 201)

    def create_group(self, name: str, *member_ids: str, **members: Any) -> Any:
        values = [{"value": id} for id in member_ids]
        body = {"schemas": [GROUP_SCHEMA], "displayName": name, "members": values, **members}
        return self._members(self.ask("POST", "/Groups", body), 201)

    def patch(self, path: str, *operations: object) -> Any:
        """The resource afterwards; a PATCH that only changes members does not return it."""
        answer = self.ask_patch(path, *operations)
        return self.get(path) if answer.status_int == 204 else self._members(answer, 200)

    def ask_patch(self, path: str, *operations: object, **headers: str) -> Any:
        return self.ask("PATCH", path, {"schemas": [PATCH_SCHEMA], "Operations": list(operations)}, **headers)

    def put(self, path: str, members: object) -> Any:
        return self._members(self.ask("PUT", path, members), 200)

    def find(self, endpoint: str, scim_filter: str, **parameters: object) -> list[str]:
        """The ids of the resources that match."""
        from urllib.parse import urlencode

        found = self.get(f"/{endpoint}?{urlencode({'filter': scim_filter, **parameters})}")
        return [item["id"] for item in found.get("Resources", [])]

    def _members(self, answer: Any, status: int) -> Any:
        assert answer.status_int == status, format_response(answer)
        assert answer.content_type == "application/scim+json", format_response(answer)
        return json.loads(answer.body)


def check_scim_error(answer: Any, status: int, scim_type: str | None = None) -> str:
    """The detail of an error in the format of RFC 7644 §3.12."""
    assert answer.status_int == status, format_response(answer)
    assert answer.content_type == "application/scim+json"
    members = json.loads(answer.body)
    assert (members["schemas"], members["status"]) == ([ERROR_SCHEMA], str(status))
    assert members.get("scimType") == scim_type, members
    detail: str = members["detail"]
    return detail
