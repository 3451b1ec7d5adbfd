"""Who is served next, where more is asked than can be done."""
