"""Amounts as people write them in recipes: fractions of the kitchen, and decimals where there is none."""

from __future__ import annotations

_DENOMINATORS = (1, 2, 3, 4, 8)
_NEAR = 0.001


def write_quantity(quantity: float, upper_end: float | None = None) -> str:
    """An amount, or a range of them.

    >>> write_quantity(2.0), write_quantity(1.5), write_quantity(0.3333), write_quantity(1.2), write_quantity(2.0, 3.0)
    ('2', '1 1/2', '1/3', '1.2', '2-3')
    """
    return _write(quantity) if upper_end is None else f"{_write(quantity)}-{_write(upper_end)}"


def _write(quantity: float) -> str:
    whole = int(quantity)
    for denominator in _DENOMINATORS:
        numerator = round((quantity - whole) * denominator)
        if abs(quantity - whole - numerator / denominator) < _NEAR:
            if numerator in (0, denominator):
                return str(whole + numerator // denominator)
            return f"{whole or ''} {numerator}/{denominator}".strip()
    return f"{quantity:.3f}".rstrip("0").rstrip(".")
