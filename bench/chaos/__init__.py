"""`make chaos`: real workers on real jobs, killed at random and at every named point; then all is counted."""
