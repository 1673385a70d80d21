"""The rule book: 24 rules, a small pure function each, with words and remediation beside it.

Owns the conditions (CapEx page, section 4). A rule never raises a finding itself and never reads
anything but the case it is given.
"""
