"""The coordinator's logic over a store: streams, epochs, switches; no clock and no network."""
