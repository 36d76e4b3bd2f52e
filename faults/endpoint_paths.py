"""Paths of the service's endpoints."""

AUTHORIZE = "/oauth/v2/authorize"
DISCOVERY = "/.well-known/openid-configuration"
INTROSPECT = "/oauth/v2/introspect"
KEYS = "/oauth/v2/keys"
MANAGEMENT = "/management/v1"
REVOKE = "/oauth/v2/revoke"
TOKEN = "/oauth/v2/token"  # noqa: S105 - an address
USERINFO = "/oauth/v2/userinfo"
