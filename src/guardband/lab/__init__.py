"""The paper's evaluation, run again: panels, their claims, their pictures, the report."""

__all__: list[str] = []
