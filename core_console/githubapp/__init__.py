"""GitHub, spoken as the console's App: tokens, dispatch, comment and the reporter's bearer.

Owns the adapter behind `ports.GitHub`. Never decides what a step becomes, and never lets a token
or a key into a log, an error or a repr.
"""
