"""A program that signs in with its key file and calls the API: python report.py ISSUER KEY_FILE PROJECT_ID API."""

import json
import sys
from pathlib import Path

import requests
from authlib.integrations.requests_client import AssertionSession

if len(sys.argv) != 5:
    sys.exit(__doc__)
issuer, key_file, project_id, api = sys.argv[1:]
key = json.loads(Path(key_file).read_text())
service = requests.get(f"{issuer}/.well-known/openid-configuration", timeout=10).json()

# Signs an assertion, exchanges it for a token, and gets a new one when that expires.
session = AssertionSession(
    token_endpoint=service["token_endpoint"],
    grant_type=AssertionSession.JWT_BEARER_GRANT_TYPE,
    issuer=key["userId"],
    subject=key["userId"],
    audience=issuer,
    scope=f"openid urn:service:iam:org:project:id:{project_id}:aud urn:service:iam:org:projects:roles",
    key=key["key"],
    header={"alg": "RS256", "kid": key["keyId"]},
    default_timeout=10,
)
answer = session.get(f"{api}/stock", timeout=10)
answer.raise_for_status()
print(json.dumps(answer.json()))
