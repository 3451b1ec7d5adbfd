"""What does the driver of a maker say? The libraries of the makers go in; devices, counters and
evidence come out, the same for every maker.
"""

__all__ = ("backends", "evidence", "hardware", "power", "seam", "simulated")
