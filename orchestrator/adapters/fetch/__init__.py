"""The network of steps that fetch: a proxy of ours that leads to the registries and the hosts of the settings."""
