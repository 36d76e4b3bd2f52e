"""Create a project with a web application: python first_project.py ISSUER KEY_FILE.

The key file belongs to a service user that may create projects in its organization, for example with ORG_OWNER.
"""

import base64
import json
import sys
import time
import uuid

import requests
from cryptography.hazmat.primitives.asymmetric.padding import PKCS1v15
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import load_pem_private_key

if len(sys.argv) != 3:
    sys.exit(__doc__)
issuer, path = sys.argv[1:]
with open(path) as file:
    key_file = json.load(file)


def part(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


# 1. Get a token for the service itself; "service" is the alias of its own project.
now = int(time.time())
header = {"alg": "RS256", "kid": key_file["keyId"]}
claims = {"iss": key_file["userId"], "sub": key_file["userId"], "aud": issuer, "iat": now, "exp": now + 300}
signed = f"{part(json.dumps(header).encode())}.{part(json.dumps(claims).encode())}"
private_key = load_pem_private_key(key_file["key"].encode(), password=None)
discovery = requests.get(f"{issuer}/.well-known/openid-configuration", timeout=10).json()
token = requests.post(
    discovery["token_endpoint"],
    data={
        "grant_type": "urn:ietf:params:oauth:grant-type:jwt-bearer",
        "scope": "openid urn:service:iam:org:project:id:service:aud",
        "assertion": f"{signed}.{part(private_key.sign(signed.encode(), PKCS1v15(), SHA256()))}",
    },
    timeout=10,
).json()

# 2. The API is on the host of the token endpoint.
api = requests.Session()
api.headers["Authorization"] = f"Bearer {token['access_token']}"
base = discovery["token_endpoint"].removesuffix("/oauth/v2/token") + "/management/v1"


def make(path: str, members: dict[str, object]) -> dict[str, object]:
    # With this key you can repeat the request after a broken connection: it takes effect once.
    answer = api.post(base + path, json=members, headers={"Idempotency-Key": str(uuid.uuid4())}, timeout=10)
    if answer.status_code == 422:
        sys.exit(f"Some fields need a change: {answer.json()['fields']}")
    answer.raise_for_status()
    return answer.json()


me = api.get(f"{base}/me", timeout=10).json()
project = make(f"/organizations/{me['organization']['id']}/projects", {"name": "Shop"})
application = make(
    f"/projects/{project['id']}/applications",
    {"name": "Shop", "type": "web", "redirect_uris": ["https://shop.example/callback"]},
)

# 3. Change the project, but only the version that was read.
shown = api.get(f"{base}/projects/{project['id']}", timeout=10)
changed = api.patch(
    f"{base}/projects/{project['id']}",
    json={"check_roles": True},
    headers={"If-Match": shown.headers["ETag"]},
    timeout=10,
)
if changed.status_code == 412:
    sys.exit("Somebody else changed the project meanwhile.")
changed.raise_for_status()

# The client secret is returned only once: store it for the application.
secret = {"client_id": application["id"], "client_secret": application["client_secret"]}
print(json.dumps({"project": changed.json(), "application": secret}, indent=2))
