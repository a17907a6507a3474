"""The event log, the reply journal, the state folder, locks."""
