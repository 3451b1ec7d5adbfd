"""What does a process tell about itself while it works? What the door, usage ingest and the timers
just did goes in; log lines, numbers and traces come out. It knows nothing of the market and tells
no secret.
"""

__all__ = ("logs", "metrics", "requests", "traces")
