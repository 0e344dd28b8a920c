"""Text work on turns: who said what, when a retain is due, what to ask, what to show.

Everything here is pure: no file, network, clock or environment. What must be read is handed in as bytes or as a
callable, what time it is as an argument.
"""
