"""Register a web application: python register_application.py INI NAME ADDRESS [VARIABLE=VALUE …].

Creates a project in the instance's own organization, and in it an application with authorization code and refresh
token, whose redirect URI is ADDRESS/callback. Prints its client id and its secret, which is shown only once.
"""

import sys

from identity.application_factory import create_application
from identity.domain.applications import ApplicationType
from identity.ini_file import APP_SECTION, read_section
from identity.services.access_control import Principal
from identity.services.commands.applications import RegisterApplication
from identity.services.commands.projects import CreateProject

if len(sys.argv) < 4:
    sys.exit(__doc__)
ini, name, address, *variables = sys.argv[1:]
settings = read_section(ini, APP_SECTION, dict(variable.split("=", 1) for variable in variables))
application_members = {
    "name": name,
    "type": ApplicationType.WEB,
    "response_types": ["code"],
    "grant_types": ["authorization_code", "refresh_token"],
    "redirect_uris": [f"{address}/callback"],
    "post_logout_redirect_uris": [f"{address}/"],
}

identity = create_application(settings)
with identity.transaction() as services:
    instance = services.find_instance()
    if instance is None:
        raise SystemExit("Run `identity bootstrap` first.")
    wanted = CreateProject.decode({"name": name})
    project = services.projects.create(instance.organization_id, wanted, principal=Principal.OPERATOR)
    command = RegisterApplication.decode(application_members)
    application, secret = services.applications.register_with_secret(project.id, command, principal=Principal.OPERATOR)
identity.close()

print("project id   ", project.id)
print("client id    ", application.id)
print("client secret", secret)
