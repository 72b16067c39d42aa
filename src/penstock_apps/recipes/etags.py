"""Which state of a saved recipe somebody has seen: its entity tag, and the question whether it is still that."""

from __future__ import annotations

import hashlib
import re

import orjson

from penstock.errors import ChangedMeanwhile
from penstock_apps.recipes.repository import SavedRecipe

_TAG = re.compile(r'(?:W/)?("[^"]*")')
"""Proxies that compress answers make a tag weak; it is still ours, and says the same."""


def etag_of(recipe: SavedRecipe) -> str:
    """The tag of a recipe's state: each change makes another one."""
    state = [str(recipe.uuid), recipe.title, recipe.body, recipe.updated_at.isoformat()]
    return f'"{hashlib.sha256(orjson.dumps(state, option=orjson.OPT_SORT_KEYS)).hexdigest()[:32]}"'


def require_match(if_match: str | None, recipe: SavedRecipe) -> None:
    """Refuse a change of a recipe that is not any more what the caller has seen; nothing is asked without a tag."""
    if if_match is None or if_match.strip() == "*" or etag_of(recipe) in _TAG.findall(if_match):
        return
    raise ChangedMeanwhile(
        f"recipe {recipe.id} was changed at {recipe.updated_at.isoformat()}, and is not what If-Match says: "
        "read it again, and make your change anew"
    )
