"""The serial link: framing and messages (pure bytes), port (pyserial URLs), session."""
