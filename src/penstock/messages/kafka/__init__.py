"""Messages over Kafka: ``docs/explanation/kafka.md`` has the promises.

``client_options.py`` reads the settings, ``client.py`` makes what they lead to: ``producer.py``, ``consumer.py`` and
``dead_letters.py``; ``records.py`` says what a message looks like on the wire, ``transport.py`` is what the relay and
the workers of one database use, and ``statistics.py`` reads how they fare with the broker.
"""
