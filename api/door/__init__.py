"""How does a request come in, and how does an answer leave? Bytes of HTTP go in; an authenticated,
limited, checked call comes out, and a problem document where that fails.
"""

__all__ = (
    "amounts",
    "auth",
    "call",
    "door",
    "errors",
    "health",
    "http_bounds",
    "keys",
    "limits",
    "models",
    "moments",
    "operation",
    "paging",
    "positions",
    "preconditions",
    "second_person",
    "timespans",
    "unverified",
)
