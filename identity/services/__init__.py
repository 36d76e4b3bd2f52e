"""Services: the rules, the stores and the audit trail combined. They know nothing of HTTP or protocols."""
