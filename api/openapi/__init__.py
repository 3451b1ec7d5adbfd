"""What does the API look like to programs? The operations of every resource go in; the OpenAPI
document and the written part of the Python client come out.
"""

__all__ = ()
