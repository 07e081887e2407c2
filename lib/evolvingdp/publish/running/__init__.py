"""Running notebooks: checked, cached, written whole or not at all."""
