"""Labels of the fields of entities, one file per entity."""
