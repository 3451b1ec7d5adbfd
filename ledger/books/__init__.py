"""Which account does a fact move, and by how much? Facts go in; balanced postings and the chart of
accounts come out.
"""

__all__ = ("books", "chart", "entry", "postings", "totals")
