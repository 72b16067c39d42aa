"""Items over HTTP: a job's grid, its errors and its export, and what waits in all jobs."""
