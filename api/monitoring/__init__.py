"""Is the market well, and does its operator hear of it when it is not? The views, the books, the
rows beside the log and what each process counts go in; `/metrics` for Prometheus and messages by
mail or chat when an alert begins and ends come out, and how each timer went. Nothing here records a
fact.
"""

__all__ = ("notices", "registry")
