"""The command line `nongauss`."""

from nongauss.cli.app import app

__all__ = ["app"]
