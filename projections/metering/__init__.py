"""What was used, by whom, in which hour? Reports and meter readings go in; sums by lease, device
and hour come out.
"""

__all__ = ("meters", "registry", "resources", "usage", "usage_hours")
