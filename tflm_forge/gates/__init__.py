"""Gates: what a firmware says it can run, and whether models may pass."""
