"""How would the market have run? Traces of clusters, conformance vectors and a made-up day go in;
the leases, sums and differences of a whole run come out.
"""

__all__ = ("conformance", "demo", "gentd26", "openb", "trace_gentd26", "trace_openb")
