"""``identity serve``: gunicorn with the settings of [server:main] and an adapted ASGI worker."""
