"""Where handlers run: on an event loop, in threads, or in processes that can be killed."""
