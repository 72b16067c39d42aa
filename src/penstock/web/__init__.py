"""The web interface: pages for people, on top of the same API that programs use."""
