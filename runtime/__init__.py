"""What every part stands on: settings, paths, errors, locks, files, processes, days and text; nothing about notes.

Modules that hooks import are light; their docstrings say so.
"""
