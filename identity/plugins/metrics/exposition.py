"""Figures in the words of Prometheus."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from prometheus_client import CollectorRegistry
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily, Metric
from prometheus_client.exposition import choose_encoder
from prometheus_client.registry import Collector

from identity.plugins.metrics.counts import Samples, added
from identity.plugins.metrics.families import COUNTED, FAMILIES, IN_USE, MEMORY, PLACES, PROCESSES, WAITING, Family
from identity.plugins.metrics.shares import Share

#: By family and labels.
Gauges = Mapping[tuple[Family, tuple[str, ...]], float]


def text(shares: Sequence[Share], stored: Gauges, accept: str) -> tuple[bytes, str]:
    """The figures of these processes and of the storage together, and the media type, by the Accept header."""
    registry = CollectorRegistry(auto_describe=False)
    registry.register(_Told(added([one.counted for one in shares]), {**_live(shares), **stored}))
    encode, media_type = choose_encoder(accept)
    return encode(registry), media_type


class _Told(Collector):
    """What stands in one answer."""

    def __init__(self, counted: Mapping[str, Samples], gauges: Gauges) -> None:
        self._counted = counted
        self._gauges = gauges

    def collect(self) -> Iterable[Metric]:
        """Each family, also one that has no sample yet."""
        for family in FAMILIES:
            if family in COUNTED:
                yield _counted(family, self._counted[family.name])
            else:
                metric = GaugeMetricFamily(family.name, family.doc, labels=family.labels)
                for (of, labels), value in self._gauges.items():
                    if of == family:
                        metric.add_metric(labels, value)
                yield metric


def _counted(family: Family, samples: Samples) -> Metric:
    if family.common and samples:
        samples = {(): [sum(count for (count,) in samples.values())]}
    if not family.bounds:
        counter = CounterMetricFamily(family.name, family.doc, labels=family.labels)
        for labels, (count,) in sorted(samples.items()):
            counter.add_metric(labels, count)
        return counter
    histogram = HistogramMetricFamily(family.name, family.doc, labels=family.labels)
    for labels, (total, *counts) in sorted(samples.items()):
        until, buckets = 0.0, []
        for bound, count in zip((*family.bounds, float("inf")), counts, strict=True):
            until += count
            buckets.append(("+Inf" if bound == float("inf") else str(bound), until))
        histogram.add_metric(labels, buckets, total)
    return histogram


def _live(shares: Sequence[Share]) -> dict[tuple[Family, tuple[str, ...]], float]:
    """What is so in the processes that live."""
    found: dict[tuple[Family, tuple[str, ...]], float] = {}

    def add(family: Family, value: float, *labels: str) -> None:
        found[family, labels] = found.get((family, labels), 0) + value

    for one in shares:
        if one.process is not None:
            add(PROCESSES, 1)
            add(MEMORY, _resident(one.process))
        for load in one.loads:
            add(IN_USE, load.in_use, load.name)
            add(PLACES, load.most, load.name)
            add(WAITING, load.waiting, load.name)
    return found


def _resident(process: int) -> int:
    """Bytes of memory of a process; 0 where the system does not say."""
    lines: Any = ()
    try:
        with open(f"/proc/{process}/status", encoding="ascii", errors="replace") as status:
            lines = status.readlines()
    except OSError:
        pass
    return next((int(line.split()[1]) * 1024 for line in lines if line.startswith("VmRSS:")), 0)
