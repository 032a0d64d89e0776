"""A live system with simulated users, to look at: `guardband demo`.

The coordinator is that of `guardband serve`; three agents, each in a process of its own, recommend
films of the embedded MovieLens problem.
"""

__all__: list[str] = []
