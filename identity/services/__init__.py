"""Use cases: rules, stores and the audit trail put together. No HTTP, no protocol words."""
