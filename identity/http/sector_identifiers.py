"""Reads the list of redirect URIs of a sector during a request, without locks while its host responds."""

from pyramid.request import Request

from identity.domain.applications import Application
from identity.services.commands.applications import ChangeApplication, RegisterApplication


def read_sector_list(
    request: Request,
    command: RegisterApplication | ChangeApplication,
    *,
    organization_id: str,
    stored: Application | None = None,
) -> None:
    """Fetch the list at the sector identifier URI, if the command is judged by it, so that the service has it.
    Commits the transaction first. ``stored`` is the application that the command changes."""
    sent = dict(command)
    uri = sent["sector_identifier_uri"]
    if stored is not None and uri is None and sent["redirect_uris"] is not None:
        uri = stored.sector_identifier_uri
    if uri:
        request.commit()
        is_dynamic = stored is not None and stored.is_dynamic
        request.services.read_current_document(uri, "" if is_dynamic else organization_id)
