"""Does one line of a bill hold, without asking the server?
In go a file that a command wrote and the log's key in any form; out comes what was shown, or what
does not hold.
"""

__all__ = ("executors", "line_proof", "log_key")
