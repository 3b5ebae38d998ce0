"""The demo with its recorded session, and the sandbox that it shares with the acceptance tests."""
