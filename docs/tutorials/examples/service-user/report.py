"""A program that signs in with its key file and calls the API: python report.py ISSUER KEY_FILE PROJECT_ID API."""

import json
import sys

import httpx
from identity_client import ServiceUser

if len(sys.argv) != 5:
    sys.exit(__doc__)
issuer, key_file, project_id, api = sys.argv[1:]

# Signs an assertion, exchanges it for a token, and gets a new one before that expires.
service_user = ServiceUser(issuer, key_file, projects=[project_id])
with httpx.Client(auth=service_user, timeout=10) as http:
    answer = http.get(f"{api}/stock")
answer.raise_for_status()
print(json.dumps(answer.json()))
