"""Effects: what would fall with a thing, for whoever is about to delete it."""

from identity.domain.effects import Effects, Removed
from identity.services.changes import UseCases


class EffectsOf(UseCases):
    """Numbers of what goes along; sessions and tokens count while they are live."""

    def of_organization(self, organization_id: str) -> Effects:
        """What falls with an organization."""
        return self._storage.effects.of(Removed.ORGANIZATION, organization_id, self._now)

    def of_project(self, project_id: str) -> Effects:
        """What falls with a project."""
        return self._storage.effects.of(Removed.PROJECT, project_id, self._now)

    def of_application(self, application_id: str) -> Effects:
        """What falls with an application."""
        return self._storage.effects.of(Removed.APPLICATION, application_id, self._now)

    def of_user(self, user_id: str) -> Effects:
        """What falls with a user of either kind."""
        return self._storage.effects.of(Removed.USER, user_id, self._now)

    def of_key(self, key_id: str) -> Effects:
        """What falls with a service user's key."""
        return self._storage.effects.of(Removed.KEY, key_id, self._now)

    def of_secret(self, secret_id: str) -> Effects:
        """What falls with a secret, of an application or of a service user."""
        return self._storage.effects.of(Removed.SECRET, secret_id, self._now)

    def of_project_grant(self, grant_id: str) -> Effects:
        """What falls with a project grant; ``users`` are those who lose access."""
        return self._storage.effects.of(Removed.PROJECT_GRANT, grant_id, self._now)

    def of_role(self, project_id: str, key: str) -> Effects:
        """What holds a role of a project, and is to lose it."""
        return self._storage.effects.of_role(project_id, key)
