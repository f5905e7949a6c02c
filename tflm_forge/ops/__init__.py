"""What a runtime can run: its op catalogue, and the op hash that host and device compare."""
