"""The same market, old and older: which operation takes longer for what happened before it."""
