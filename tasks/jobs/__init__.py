"""One handler for each kind of job: it reads the job, calls a service and reports."""
