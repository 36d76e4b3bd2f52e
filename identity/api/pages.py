"""Pages: HTML pages and forms of plugins, and their language."""

from identity.domain.messages import gettext_lazy, ngettext_lazy
from identity.http.cookies import request_cookie_headers
from identity.http.language_negotiation import RequestLanguage
from identity.http.large_documents import json_file_response
from identity.http.list_parameters import ListParameters
from identity.http.route_contexts import RouteContext
from identity.pages.account_extensions import SecuritySection, SecuritySectionRow
from identity.pages.error_pages import render_error_page
from identity.pages.event_labels import EventLabels
from identity.pages.forms import Form
from identity.pages.layout import NavigationGroup, NavigationItem
from identity.pages.page import FormPage, FormRedisplay, Page
from identity.pages.registration_form import RegistrationForm
from identity.pages.rendering import see_other
from identity.pages.scope_descriptions import ScopeDescriptions
from identity.pages.signed_in_page import SignedInPage
from identity.pages.transactional_mails import TransactionalMails
from identity.pages.translation import Translator
from identity.pages.user_agents import describe_user_agent

__all__ = [
    "EventLabels",
    "Form",
    "FormPage",
    "FormRedisplay",
    "ListParameters",
    "NavigationGroup",
    "NavigationItem",
    "Page",
    "RegistrationForm",
    "RequestLanguage",
    "RouteContext",
    "ScopeDescriptions",
    "SecuritySection",
    "SecuritySectionRow",
    "SignedInPage",
    "TransactionalMails",
    "Translator",
    "describe_user_agent",
    "gettext_lazy",
    "json_file_response",
    "ngettext_lazy",
    "render_error_page",
    "request_cookie_headers",
    "see_other",
]
