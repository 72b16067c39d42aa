"""The applications that ship with Penstock, each a guest: written against its public modules alone.

Each folder has the same files, as far as it has such a part: ``application`` (what it brings), ``settings``,
``tables``, ``migrations/``, ``repository`` (the only one that knows SQL), ``payloads`` (the types of what jobs hold),
``kinds``, ``service``, ``routes``, ``schemas``, ``commands``, ``samples``, ``web/``. They are found by the entry points
of ``pyproject.toml``.
"""
