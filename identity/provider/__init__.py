"""OAuth 2.0 and OpenID Connect, independent of the web framework."""
