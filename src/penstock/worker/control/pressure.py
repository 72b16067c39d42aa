"""Whether the machine is short of processor time or of memory. Pure: the figures are read elsewhere.

A gauge has two marks for each figure. Pressure begins above the upper one and ends below the lower one, so a figure
that trembles around one mark does not switch the answer on and off.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from penstock.errors import ConfigurationError


class Pressure(Enum):
    """What the machine is short of; memory counts before the processor, because running out of it kills."""

    NONE = "none"
    CPU = "cpu"
    MEMORY = "memory"


@dataclass(frozen=True, slots=True)
class HostFigures:
    """One reading, as shares from 0 to 1: processor time of the cores we may use, memory of the limit we live under."""

    cpu_share: float
    memory_share: float

    @classmethod
    def of(cls, *, cpu_percent: float, cores: int, memory_used: float, memory_limit: float) -> HostFigures:
        """From what an operating system tells: percent of one core (200 is two full cores), and two amounts of bytes.

        >>> HostFigures.of(cpu_percent=150.0, cores=2, memory_used=3e9, memory_limit=4e9)
        HostFigures(cpu_share=0.75, memory_share=0.75)
        """
        return cls(
            cpu_percent / (100.0 * max(cores, 1)),
            memory_used / memory_limit if memory_limit > 0 else 0.0,
        )


@dataclass(frozen=True, slots=True)
class Marks:
    """Where pressure begins (above ``begins``) and where it ends (below ``ends``)."""

    begins: float
    ends: float

    def __post_init__(self) -> None:
        if not 0.0 < self.ends < self.begins:
            raise ConfigurationError(
                f"pressure begins at {self.begins} and ends at {self.ends}; it must end below where it begins"
            )

    def holds(self, share: float, already: bool) -> bool:
        """Whether there is pressure at this share, given whether there was."""
        return share > (self.ends if already else self.begins)


class PressureGauge:
    """Turns figures into a pressure, with hysteresis; processor time is smoothed, memory is taken as it is.

    >>> gauge = PressureGauge()
    >>> gauge.observe(HostFigures(cpu_share=0.2, memory_share=0.9))
    <Pressure.MEMORY: 'memory'>
    >>> gauge.observe(HostFigures(cpu_share=0.2, memory_share=0.8)).value, gauge.observe(HostFigures(0.2, 0.7)).value
    ('memory', 'none')
    """

    SMOOTHING = 0.3
    """How much one reading of the processor counts; it jumps about, and one busy second is no shortage."""

    def __init__(self, *, cpu: Marks | None = None, memory: Marks | None = None) -> None:
        self._cpu_marks = cpu or Marks(begins=0.97, ends=0.85)
        self._memory_marks = memory or Marks(begins=0.85, ends=0.75)
        self._cpu_share: float | None = None
        self._short_of_cpu = False
        self._short_of_memory = False

    @property
    def setting(self) -> Pressure:
        """The pressure as of the last reading."""
        if self._short_of_memory:
            return Pressure.MEMORY
        return Pressure.CPU if self._short_of_cpu else Pressure.NONE

    def observe(self, figures: HostFigures) -> Pressure:
        """One reading; the answer is the pressure now."""
        if self._cpu_share is None:
            self._cpu_share = figures.cpu_share
        else:
            self._cpu_share += self.SMOOTHING * (figures.cpu_share - self._cpu_share)
        self._short_of_cpu = self._cpu_marks.holds(self._cpu_share, self._short_of_cpu)
        self._short_of_memory = self._memory_marks.holds(figures.memory_share, self._short_of_memory)
        return self.setting
