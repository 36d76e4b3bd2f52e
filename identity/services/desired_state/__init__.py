"""Reconcile an instance with a document: `Reconciler`, with one module per family of entities.

An import creates everything; a desired state is compared with what is stored.
"""
