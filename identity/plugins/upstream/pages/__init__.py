"""Redirect and callback pages, and the pages for users and managers."""
