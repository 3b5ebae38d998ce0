"""Skills on this machine: where they are, and what each says of itself. Reading only."""
