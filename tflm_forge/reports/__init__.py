"""Reports of a test in the forms people and programs read: text tables and JSON."""
