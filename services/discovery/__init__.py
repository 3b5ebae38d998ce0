"""Discovery: scanning confirmed sources for new patterns, the watchlist, proposing patterns that the user adopts."""
