"""Commands run confined, in the strongest tier that the machine offers."""
