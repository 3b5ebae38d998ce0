"""`make chaos`: kill real workers at random and at every named point, then count jobs, memories and processes."""
