"""`make demo` and the recorded session, and the sandbox that they share with the acceptance tests."""
