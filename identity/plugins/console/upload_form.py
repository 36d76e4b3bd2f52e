"""UploadForm: a form of the console with a file (RFC 7578), of which nothing is looked at before the form's token."""

from collections.abc import Mapping
from typing import IO, Any, ClassVar

from pyramid.response import Response

from identity.domain.words import say
from identity.http.documents import sent_document
from identity.http.errors import TooLarge
from identity.pages.forms import Form
from identity.pages.page import WrongContentType
from identity.pages.uploads import TYPE, read_upload
from identity.plugins.console.console_form import ConsoleForm


class UploadForm(ConsoleForm):
    """``files`` are those that were chosen, by field, while the form is looked at."""

    #: The field of the file, at which is told that it is too large.
    file_field: ClassVar[str]

    def __init__(self, context: Any, request: Any) -> None:
        super().__init__(context, request)
        self._body: IO[bytes] | None = None
        self.files: Mapping[str, IO[bytes]] = {}

    @property
    def most_bytes(self) -> int | None:
        """How large all of it may be; None for as large as documents."""
        return None

    @property
    def too_large(self) -> str:
        """What is said of more."""
        return say("This is too large")

    def post(self) -> Response:
        """The answer to POST."""
        try:
            self._body = sent_document(self.request, most=self.most_bytes)
        except TooLarge:
            return self._again(Form({}), status=413, problems={self.file_field: self.too_large})
        return super().post()

    def _read(self) -> Form:
        if self.request.content_type != TYPE or self._body is None:
            raise WrongContentType(f"the body must be {TYPE}")
        form, self.files = read_upload(self.request, self._body)
        return form
