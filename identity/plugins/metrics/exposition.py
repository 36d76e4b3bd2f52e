"""The Prometheus exposition format."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from prometheus_client import CollectorRegistry
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily, Metric
from prometheus_client.exposition import choose_encoder
from prometheus_client.registry import Collector

from identity.plugins.metrics.counters import Samples, sum_samples
from identity.plugins.metrics.families import (
    COUNTER_FAMILIES,
    FAMILIES,
    MEMORY,
    POOL_IN_USE,
    POOL_QUEUED,
    POOL_SIZE,
    PROCESSES,
    MetricFamily,
)
from identity.plugins.metrics.process_samples import ProcessSamples

#: By family and labels.
Gauges = Mapping[tuple[MetricFamily, tuple[str, ...]], float]


def render_exposition(processes: Sequence[ProcessSamples], storage_gauges: Gauges, accept: str) -> tuple[bytes, str]:
    """The metrics of these processes and of the storage, and the media type, by the Accept header."""
    registry = CollectorRegistry(auto_describe=False)
    registry.register(
        _SnapshotCollector(
            sum_samples([process_samples.samples for process_samples in processes]),
            {**_process_gauges(processes), **storage_gauges},
        )
    )
    encode, media_type = choose_encoder(accept)
    return encode(registry), media_type


class _SnapshotCollector(Collector):
    """The metrics of one response."""

    def __init__(self, counted: Mapping[str, Samples], gauges: Gauges) -> None:
        self._counted = counted
        self._gauges = gauges

    def collect(self) -> Iterable[Metric]:
        """All families, including those without samples."""
        for family in FAMILIES:
            if family in COUNTER_FAMILIES:
                yield _counter_family(family, self._counted[family.name])
            else:
                metric = GaugeMetricFamily(family.name, family.documentation, labels=family.labels)
                for (name, labels), value in self._gauges.items():
                    if name == family:
                        metric.add_metric(labels, value)
                yield metric


def _counter_family(family: MetricFamily, samples: Samples) -> Metric:
    if family.is_shared and samples:
        samples = {(): [sum(count for (count,) in samples.values())]}
    if not family.buckets:
        counter = CounterMetricFamily(family.name, family.documentation, labels=family.labels)
        for labels, (count,) in sorted(samples.items()):
            counter.add_metric(labels, count)
        return counter
    histogram = HistogramMetricFamily(family.name, family.documentation, labels=family.labels)
    for labels, (total, *counts) in sorted(samples.items()):
        until, buckets = 0.0, []
        for bound, count in zip((*family.buckets, float("inf")), counts, strict=True):
            until += count
            buckets.append(("+Inf" if bound == float("inf") else str(bound), until))
        histogram.add_metric(labels, buckets, total)
    return histogram


def _process_gauges(shares: Sequence[ProcessSamples]) -> dict[tuple[MetricFamily, tuple[str, ...]], float]:
    """Gauges of the live processes."""
    found: dict[tuple[MetricFamily, tuple[str, ...]], float] = {}

    def add(family: MetricFamily, value: float, *labels: str) -> None:
        found[family, labels] = found.get((family, labels), 0) + value

    for process_samples in shares:
        if process_samples.process_id is not None:
            add(PROCESSES, 1)
            add(MEMORY, _resident_bytes(process_samples.process_id))
        for load in process_samples.pool_usages:
            add(POOL_IN_USE, load.in_use, load.name)
            add(POOL_SIZE, load.size, load.name)
            add(POOL_QUEUED, load.queued, load.name)
    return found


def _resident_bytes(process: int) -> int:
    """Resident memory of a process in bytes; 0 if the system does not report it."""
    lines: Any = ()
    try:
        with open(f"/proc/{process}/status", encoding="ascii", errors="replace") as status:
            lines = status.readlines()
    except OSError:
        pass
    return next((int(line.split()[1]) * 1024 for line in lines if line.startswith("VmRSS:")), 0)
