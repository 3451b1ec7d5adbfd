"""Does one line of a bill, or one proof, hold without asking the server?

In go a file that a command wrote and the log's key in any form; out comes what was shown, or what
does not hold. A server is asked for the key alone, where its address is what was given.
"""

__all__ = ("line_proof", "log_key")
