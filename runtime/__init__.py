"""What every part stands on: settings, paths, locks, files, processes, days and text. It knows nothing of notes."""
