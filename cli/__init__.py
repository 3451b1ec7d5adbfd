"""What can a person do from a terminal? Words and settings go in; one answer for people or one JSON
document, and an exit code, come out.
"""

__all__ = (
    "acts",
    "arguments",
    "countersigning",
    "remote",
    "settings",
    "signing",
    "terminal",
    "this_machine",
    "work_options",
)
