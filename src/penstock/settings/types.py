"""Types of settings that are lists or objects, and how they are written in the environment."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from dataclasses import dataclass
from ipaddress import IPv4Network, IPv6Network, ip_network
from pathlib import Path
from typing import Annotated, Any

from pydantic import BeforeValidator
from pydantic_settings import NoDecode


@dataclass(frozen=True, slots=True)
class WrittenAs:
    """How the value of a setting is written in the environment: a mark on its type."""

    text: Callable[[Any], str]


def _split(value: object) -> object:
    return tuple(part.strip() for part in value.split(",") if part.strip()) if isinstance(value, str) else value


Names = Annotated[tuple[str, ...], NoDecode, BeforeValidator(_split), WrittenAs(",".join)]
"""A setting that is a list: separated by commas in the environment."""


def _split_paths(value: object) -> object:
    return tuple(part.strip() for part in value.split(os.pathsep) if part.strip()) if isinstance(value, str) else value


Folders = Annotated[
    tuple[Path, ...],
    NoDecode,
    BeforeValidator(_split_paths),
    WrittenAs(lambda folders: os.pathsep.join(map(str, folders))),
]
"""A setting that is a list of folders: separated as in PATH."""


Network = IPv4Network | IPv6Network
_EVERYWHERE = (IPv4Network("0.0.0.0/0"), IPv6Network("::/0"))


def _read_networks(value: object) -> object:
    parts = _split(value)
    if parts == ("*",):
        return _EVERYWHERE
    if not isinstance(parts, tuple):
        return parts
    networks = []
    for part in parts:
        try:
            networks.append(ip_network(part))
        except ValueError as error:
            raise ValueError(f"{part!r} is no address and no network such as 10.0.0.0/8: {error}") from None
    return tuple(networks)


Networks = Annotated[
    tuple[Network, ...],
    NoDecode,
    BeforeValidator(_read_networks),
    WrittenAs(lambda networks: ",".join(map(str, networks))),
]
"""A setting that is a list of networks and addresses, separated by commas; ``*`` is all of them."""


def _read_owners(value: object) -> object:
    if not isinstance(value, str):
        return value
    try:
        owners = json.loads(value)
    except ValueError as error:
        raise ValueError(f"it is not JSON: {error}") from None
    if not isinstance(owners, dict) or not all(
        isinstance(users, list) and all(isinstance(user, str) and user for user in users) for users in owners.values()
    ):
        raise ValueError('it is an object with a list of users for each place, as in {"/srv/inbox": ["ada"]}')
    return owners


Owners = Annotated[
    dict[str, tuple[str, ...]],
    NoDecode,
    BeforeValidator(_read_owners),
    WrittenAs(lambda owners: json.dumps({place: list(users) for place, users in owners.items()}) if owners else ""),
]
"""A setting that says whose places are: a JSON object in the environment."""
