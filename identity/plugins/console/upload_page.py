"""A console form with a file upload (RFC 7578). The body is read after the form token is checked."""

from collections.abc import Mapping
from typing import IO, Any, ClassVar

from pyramid.response import Response

from identity.domain.messages import gettext_lazy as _
from identity.http.error_views import BodyTooLarge
from identity.http.large_documents import read_uploaded_document
from identity.pages.forms import Form
from identity.pages.page import UnsupportedFormType
from identity.pages.uploads import MULTIPART_TYPE, parse_multipart_form
from identity.plugins.console.form_page import ConsoleFormPage


class UploadFormPage(ConsoleFormPage):
    """``files`` are the uploads by field while the form is validated."""

    #: The field that shows the error for an upload that is too large.
    file_field: ClassVar[str]

    def __init__(self, context: Any, request: Any) -> None:
        super().__init__(context, request)
        self._body: IO[bytes] | None = None
        self.files: Mapping[str, IO[bytes]] = {}

    @property
    def max_bytes(self) -> int | None:
        """The limit for the whole body; None for that of documents."""
        return None

    @property
    def too_large_message(self) -> str:
        return _("This is too large")

    def post(self) -> Response:
        try:
            self._body = read_uploaded_document(self.request, max_bytes=self.max_bytes)
        except BodyTooLarge:
            return self._redisplay(Form({}), status=413, problems={self.file_field: self.too_large_message})
        return super().post()

    def _read_form(self) -> Form:
        if self.request.content_type != MULTIPART_TYPE or self._body is None:
            raise UnsupportedFormType(f"the body must be {MULTIPART_TYPE}")
        form, self.files = parse_multipart_form(self.request, self._body)
        return form
