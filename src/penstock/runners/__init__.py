"""Where handlers run: in this thread, in other threads, in processes that can be killed, or on a Celery cluster."""
