"""The application: the only place that knows all adapters.

Owns which parts a console is made of and the order of starting and stopping. It decides nothing.
"""

from core_console.app.console import DOCUMENT_PATH, Console
from core_console.app.serving import serve

__all__ = ["DOCUMENT_PATH", "Console", "serve"]
