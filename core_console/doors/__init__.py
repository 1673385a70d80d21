"""The JSON doors over HTTP: strict at the boundary, and then one command to the engine.

Owns HTTP alone: what a request may look like and how an outcome reads. Never decides, never
stores, and never trusts a word of a body that the checks have not passed.
"""
