"""How agents start: kernels run as they are written until machine code is there.

Nothing here changes machine code, so none of it counts for the cache; see `_compile`.
"""
