"""The rules, without I/O: states, the transition table, vocabularies, policies and decisions."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from penstock.lifecycle.celery_states import EFFECTIVE_STATUSES, effective_status
    from penstock.lifecycle.identifiers import Identifier
    from penstock.lifecycle.job import HistoryEntry, Progress, SubmitOutcome
    from penstock.lifecycle.kind import Kinds
    from penstock.lifecycle.payloads import JSON, storable_text, storable_texts
    from penstock.lifecycle.policy import PolicyOptions
    from penstock.lifecycle.quantities import seconds, size_in_bytes
    from penstock.lifecycle.states import Actor, ErrorType, ItemRole, KilledBy, Phase
    from penstock.lifecycle.transitions import TRANSITIONS, Transition, actions
    from penstock.lifecycle.vocabularies import VOCABULARIES, Vocabulary
else:
    from penstock.lazy import lazy_names

    __getattr__, __dir__ = lazy_names(
        __name__,
        {
            "penstock.lifecycle.celery_states": "EFFECTIVE_STATUSES effective_status",
            "penstock.lifecycle.identifiers": "Identifier",
            "penstock.lifecycle.job": "HistoryEntry Progress SubmitOutcome",
            "penstock.lifecycle.kind": "Kinds",
            "penstock.lifecycle.payloads": "JSON storable_text storable_texts",
            "penstock.lifecycle.policy": "PolicyOptions",
            "penstock.lifecycle.quantities": "seconds size_in_bytes",
            "penstock.lifecycle.states": "Actor ErrorType ItemRole KilledBy Phase",
            "penstock.lifecycle.transitions": "TRANSITIONS Transition actions",
            "penstock.lifecycle.vocabularies": "VOCABULARIES Vocabulary",
        },
    )

__all__ = [
    "Actor", "EFFECTIVE_STATUSES", "ErrorType", "HistoryEntry", "Identifier", "ItemRole", "JSON", "KilledBy",
    "Kinds", "Phase", "PolicyOptions", "Progress", "SubmitOutcome", "TRANSITIONS", "Transition",
    "VOCABULARIES", "Vocabulary", "actions", "effective_status", "seconds", "size_in_bytes", "storable_text",
    "storable_texts",
]  # fmt: skip
