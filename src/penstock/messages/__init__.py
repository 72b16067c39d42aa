"""Where messages of the outbox go, and how others come in: functions of this process, or a Kafka broker.

``in_process.py`` is the default. ``kafka/`` needs ``penstock[kafka]``, and is loaded when ``PENSTOCK_TRANSPORT`` says
so.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from penstock.messages.in_process import InProcessMessages
    from penstock.messages.kafka.client import KafkaClient
    from penstock.messages.kafka.consumer import KafkaConsumer
    from penstock.messages.kafka.dead_letters import DeadLetter, DeadLetters
    from penstock.messages.kafka.producer import KafkaProducer
    from penstock.messages.subscriptions import Subscriber, Subscriptions
else:
    from penstock.lazy import lazy_names

    __getattr__, __dir__ = lazy_names(
        __name__,
        {
            "penstock.messages.in_process": "InProcessMessages",
            "penstock.messages.kafka.client": "KafkaClient",
            "penstock.messages.kafka.consumer": "KafkaConsumer",
            "penstock.messages.kafka.dead_letters": "DeadLetter DeadLetters",
            "penstock.messages.kafka.producer": "KafkaProducer",
            "penstock.messages.subscriptions": "Subscriber Subscriptions",
        },
    )

__all__ = [
    "DeadLetter", "DeadLetters", "InProcessMessages", "KafkaClient", "KafkaConsumer", "KafkaProducer", "Subscriber",
    "Subscriptions",
]  # fmt: skip
