"""A host that publishes the metadata of a client."""

import json
from collections.abc import Mapping
from typing import Any

from identity.outbound_http import OutboundResponse
from identity.plugins.client_id_metadata_documents import ClientIdMetadataDocuments
from identity.services.client_metadata import ClientMetadataClient
from identity.testing.relying_party import RelyingParty
from identity.testing.world import World

URL = "https://app.example/client.json"
CALLBACK = "https://app.example/callback"


def document(**members: Any) -> dict[str, Any]:
    usual = {"client_id": URL, "client_name": "Invoices & more", "redirect_uris": [CALLBACK]}
    return {**usual, "grant_types": ["authorization_code", "refresh_token"], **members}


class MetadataHost:
    """Responds with the document at any URL."""

    def __init__(self) -> None:
        self.document: Mapping[str, Any] = document()
        self.status = 200
        self.requests: list[str] = []

    def send(self, method: str, url: str, **_: Any) -> OutboundResponse:
        self.requests.append(url)
        return OutboundResponse(self.status, json.dumps({**self.document, "client_id": url}).encode(), "max-age=300")


def install_url_client(world: World, *hosts: str, **members: Any) -> tuple[RelyingParty, MetadataHost]:
    """A public client known by its URL, and its host; the world accepts clients of these hosts."""
    host = MetadataHost()
    host.document = document(**members)
    world.identity.process_state.client_metadata = ClientMetadataClient(host, [ClientIdMetadataDocuments(hosts)])
    party = RelyingParty(
        world.client,
        URL,
        None,
        redirect_uri=host.document["redirect_uris"][0],
        now=lambda: world.clock.seconds,
        authentication_method="none",
    )
    return party, host
