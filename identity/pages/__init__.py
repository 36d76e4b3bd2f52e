"""What all HTML pages share: templates, style sheet, scripts, translations, forms and error pages.

A plugin with pages calls ``config.include("identity.pages")`` and then adds its own::

    config.add_page_templates("identity.plugins.login:templates")
    config.add_page("login.name", "/login/{request}", LoginName, permission=NO_PERMISSION_REQUIRED)
"""

from pyramid.config import Configurator


def includeme(config: Configurator) -> None:
    """Pyramid runs this once, no matter how many plugins include it."""
    config.include("identity.pages.rendering")
    config.include("identity.pages.static_files")
    config.include("identity.pages.page_branding")
    config.include("identity.pages.branding_preview")
    config.include("identity.pages.page")
    config.include("identity.pages.signed_in_page")
    config.include("identity.pages.theme_page")
    config.include("identity.pages.impersonation")
    config.include("identity.pages.account_extensions")
    config.include("identity.pages.sign_in_page")
    config.include("identity.pages.sign_out")
    config.include("identity.pages.factor_pages")
    config.include("identity.pages.error_pages")
    config.include("identity.pages.transactional_mails")
    config.include("identity.pages.development_mails")
