"""``identity serve``: gunicorn with settings from the ini file's [server:main], and what its ASGI worker lacks."""
