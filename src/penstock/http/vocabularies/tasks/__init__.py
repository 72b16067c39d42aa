"""Tasks: five statuses that never lie, who stopped a job, and why it failed."""
