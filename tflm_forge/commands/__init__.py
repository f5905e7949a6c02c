"""One module a command: options -> core call -> console. A module's name is the word the user types."""
