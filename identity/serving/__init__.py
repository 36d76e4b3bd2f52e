"""``identity serve``: gunicorn with settings from the ini file's [server:main], and what its ASGI worker lacks."""

#: In a worker: the name of its arbiter, and how many workers had taken the place of another one when it was forked.
replaced: tuple[str, int] | None = None
