"""Reading from outside the vault: transcripts, notes, web, language models. Nothing is written or decided here."""
