"""What is sent to a model, what comes back, how far it is and what it takes."""
