"""Who may do what, and the record of what was done."""
