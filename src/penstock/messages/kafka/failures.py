"""What an error of the Kafka client means to those who do not know Kafka."""

from __future__ import annotations

from confluent_kafka import KafkaError, KafkaException

from penstock.errors import BrokerUnavailable, ConfigurationError, PayloadTooLarge, PenstockError

_UNKNOWN_TOPIC = frozenset({KafkaError._UNKNOWN_TOPIC, KafkaError._UNKNOWN_PARTITION, KafkaError.UNKNOWN_TOPIC_OR_PART})
_AWAY = frozenset({
    KafkaError._ALL_BROKERS_DOWN, KafkaError._MSG_TIMED_OUT, KafkaError._TIMED_OUT, KafkaError._TIMED_OUT_QUEUE,
    KafkaError._TRANSPORT, KafkaError._QUEUE_FULL, KafkaError._RESOLVE, KafkaError._AUTHENTICATION, KafkaError._SSL,
    KafkaError._PURGE_QUEUE, KafkaError._PURGE_INFLIGHT, KafkaError._WAIT_COORD,
    KafkaError.NOT_ENOUGH_REPLICAS, KafkaError.NOT_ENOUGH_REPLICAS_AFTER_APPEND, KafkaError.LEADER_NOT_AVAILABLE,
    KafkaError.NOT_LEADER_FOR_PARTITION, KafkaError.COORDINATOR_NOT_AVAILABLE, KafkaError.REQUEST_TIMED_OUT,
    KafkaError.NETWORK_EXCEPTION, KafkaError.BROKER_NOT_AVAILABLE, KafkaError.COORDINATOR_LOAD_IN_PROGRESS,
})  # fmt: skip
"""No message is to blame for these: they pass, or somebody has to look at the broker."""


def translate(error: KafkaError, *, topic: str, reason: str | None = None) -> PenstockError:
    """The error of ours; ``reason`` is what the client said last about its connections."""
    code = error.code()
    if code in _UNKNOWN_TOPIC:
        return PenstockError(f"the broker has no topic {topic!r}; create it", code="TOPIC_UNKNOWN")
    if code == KafkaError.MSG_SIZE_TOO_LARGE:
        return PayloadTooLarge(f"the broker takes no message as large as this one of topic {topic!r}: {error.str()}")
    if code in _AWAY or error.retriable():
        return BrokerUnavailable(f"no broker has confirmed it: {reason or error.str()}")
    return PenstockError(f"the broker refused a message of topic {topic!r}: {error.str()}", code="BROKER_REFUSED")


def configuration_error(exception: KafkaException) -> ConfigurationError:
    """The client cannot begin with these settings: a file that is no certificate, for one."""
    text = f"Kafka cannot be used as the settings (PENSTOCK_KAFKA_…) say: {error_of(exception).str()}"
    return ConfigurationError(text, code="KAFKA_MISCONFIGURED")


def error_of(exception: KafkaException) -> KafkaError:
    """The error inside of what the client raises."""
    error = exception.args[0] if exception.args else None
    return error if isinstance(error, KafkaError) else KafkaError(KafkaError._FAIL, str(exception))
