"""When scheduled jobs are due: a table and date arithmetic. The current time is passed in."""
