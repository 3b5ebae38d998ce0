"""Background work: `queue` holds and runs jobs, `jobs` says what each kind of job does."""
