"""A coordinator over HTTP: API, dashboard, metrics. Needs `pip install 'guardband[live]'`."""

from guardband.live.server.app import make_app
from guardband.live.server.settings import Settings

__all__ = ["Settings", "make_app"]
