"""One module per persona, and the answer loop they share."""
