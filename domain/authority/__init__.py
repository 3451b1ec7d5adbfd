"""Who may decide for the network, and with whose signature? Keys, changes of the register and
signed votes go in; the governors in force and the votes that count come out. So does the key that
signs the log, by its announced replacements.
"""

__all__ = (
    "acts",
    "ballot",
    "governors",
    "key_recovery",
    "log_key",
    "reasons",
    "register",
    "registry",
    "vote",
)
