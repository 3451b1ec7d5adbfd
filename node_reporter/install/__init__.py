"""How does the reporter start with the machine? The system and the user go in; a systemd unit, a
launchd job or a Windows task comes out.
"""

__all__ = ("install",)
