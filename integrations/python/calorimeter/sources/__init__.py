"""Libraries whose implementations `--python NAME` adds."""
