"""Reading transcripts: from an agent's growing file, or list of messages, to what was said since the last time.

`lines` cuts bytes into lines, `cursor` finds the place to go on by content, `reader` joins both with a dialect, and
`claude_code`, `codex` and `plain` each know one way of writing conversations down.
"""
