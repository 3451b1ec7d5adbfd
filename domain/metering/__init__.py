"""What was reported, and what is reported time worth? Signed reports go in; the rows, their server
times and the GPU-microseconds they count for come out.
"""

__all__ = ("counting", "pin", "reasons", "registry", "report", "resources", "row_times")
