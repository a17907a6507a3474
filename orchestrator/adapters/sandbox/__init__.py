"""What keeps commands that a model wrote from the rest of the machine: one interface, a tier per kind of machine."""
