"""Jobs over HTTP: five statuses that never lie, who stopped a job and why it failed, and what people do to it."""
