"""The frozen structs of every document, and their codec.

Owns what is stored. Never decides, never does I/O and never imports the contract's messages.
"""
