"""What does everybody need? Home, signing in and out, one's
sessions, and the reference of the API.
"""

__all__ = ("registry",)
