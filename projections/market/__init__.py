"""What does the matcher choose from? Facts of offers, bids and nodes go in; columns in memory and
the nodes that fit a need come out.
"""

__all__ = ("bids", "columns", "contests", "feed", "match", "registry", "unmatched")
