"""Everything that runs on the device: one trial, trained and measured, with no orchestrator in it."""
