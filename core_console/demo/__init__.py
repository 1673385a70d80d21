"""The demo: the console and a stand-in for GitHub as real processes, and two operators.

Owns a story that can be watched and that fails when the product does. Nothing else imports it.
"""
