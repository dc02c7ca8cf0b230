"""`python -m nongauss.cli` is the command `nongauss`."""

from nongauss.cli.app import app

app()
