"""The daemon's HTTP interface: health, metrics, the API of everything the command line does, live events."""
