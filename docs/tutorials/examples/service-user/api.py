"""An API for programs with the role reader in its project."""

import os
from typing import Annotated

from fastapi import Depends, FastAPI
from identity_client import AccessToken, AsyncIdentityClient
from identity_client.fastapi import Api

client = AsyncIdentityClient(
    os.environ["ISSUER"],
    project_id=os.environ["PROJECT_ID"],
    client_id=os.environ["CLIENT_ID"],
    client_secret=os.environ["CLIENT_SECRET"],
)
api = Api(client)
app = FastAPI()


@app.get("/stock")
def stock(token: Annotated[AccessToken, Depends(api.require("reader"))]):
    return {"apples": 12, "asked_by": token.username}
