"""An API for programs with the role reader in its project."""

import os
from typing import Annotated

import requests
from fastapi import Depends, FastAPI, HTTPException
from fastapi.security import HTTPAuthorizationCredentials, HTTPBearer

ISSUER, PROJECT_ID = os.environ["ISSUER"], os.environ["PROJECT_ID"]
CLIENT = (os.environ["CLIENT_ID"], os.environ["CLIENT_SECRET"])

service = requests.get(f"{ISSUER}/.well-known/openid-configuration", timeout=10).json()
app = FastAPI()


def reader(credentials: Annotated[HTTPAuthorizationCredentials, Depends(HTTPBearer())]):
    """Introspect the token: 401 unless it is active for this API, 403 without the role."""
    answer = requests.post(
        service["introspection_endpoint"], data={"token": credentials.credentials}, auth=CLIENT, timeout=10
    )
    answer.raise_for_status()
    token = answer.json()
    if not token["active"] or PROJECT_ID not in token["aud"]:
        raise HTTPException(401, headers={"WWW-Authenticate": 'Bearer error="invalid_token"'})
    if "reader" not in token.get(f"urn:service:iam:org:project:{PROJECT_ID}:roles", {}):
        raise HTTPException(403)
    return token


@app.get("/stock")
def stock(token: Annotated[dict, Depends(reader)]):
    return {"apples": 12, "asked_by": token["username"]}
