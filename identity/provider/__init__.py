"""OAuth 2.0 and OpenID Connect: protocol words only, no web framework."""
