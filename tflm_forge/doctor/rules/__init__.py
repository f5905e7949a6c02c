"""The rules, one module a subject; each module's rules are the `Rule` values in it."""
