"""What does the server answer, and what does it do by the clock? Requests over HTTP and the time go
in; answers, problem documents and new facts come out. The rules are in `domain`.
"""

__all__ = ("index", "main", "rooms", "settings", "timers")
