"""The command line `nongauss`.

While it is imported, which takes a second, Ctrl-C ends the process as other signals do, without a traceback.
"""

import signal
import threading

_is_free = threading.current_thread() is threading.main_thread()
_is_free = _is_free and signal.getsignal(signal.SIGINT) is signal.default_int_handler
if _is_free:
    signal.signal(signal.SIGINT, signal.SIG_DFL)

from nongauss.cli.app import app  # noqa: E402 (what is waited for)

if _is_free:
    signal.signal(signal.SIGINT, signal.default_int_handler)

__all__ = ["app"]
