"""Get a token for a service user and call userinfo: python first_token.py ISSUER KEY_FILE."""

import base64
import json
import sys
import time

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


# 1. Create the assertion: a JWT, signed with the private key of the key file.
now = int(time.time())
header = {"alg": "RS256", "kid": key_file["keyId"]}
claims = {"iss": key_file["userId"], "sub": key_file["userId"], "aud": issuer, "iat": now, "exp": now + 300}
signed = f"{part(json.dumps(header).encode())}.{part(json.dumps(claims).encode())}"
private_key = load_pem_private_key(key_file["key"].encode(), password=None)
assertion = f"{signed}.{part(private_key.sign(signed.encode(), PKCS1v15(), SHA256()))}"

# 2. Exchange it for a token.
discovery = requests.get(f"{issuer}/.well-known/openid-configuration", timeout=10).json()
answer = requests.post(
    discovery["token_endpoint"],
    data={
        "grant_type": "urn:ietf:params:oauth:grant-type:jwt-bearer",
        "scope": "openid profile",
        "assertion": assertion,
    },
    timeout=10,
)
answer.raise_for_status()
token = answer.json()

# 3. Use the token.
who = requests.get(
    discovery["userinfo_endpoint"],
    headers={"Authorization": f"Bearer {token['access_token']}"},
    timeout=10,
).json()
print(json.dumps({"expires_in": token["expires_in"], **who}, indent=2))
