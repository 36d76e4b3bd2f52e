"""The Prometheus exposition format."""

from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress

from prometheus_client import CollectorRegistry, Metric
from prometheus_client.exposition import choose_encoder
from prometheus_client.registry import Collector

from identity.plugins.metrics.families import (
    COUNTER_FAMILIES,
    FAMILIES,
    MEMORY,
    PROCESSES,
    WORKERS_REPLACED,
    MetricFamily,
)

#: By family and labels.
Gauges = Mapping[tuple[MetricFamily, tuple[str, ...]], float]


def render_exposition(
    counted: Mapping[str, Metric], processes: Iterable[int], storage_gauges: Gauges, accept: str
) -> tuple[bytes, str]:
    """The metrics of these processes and of the storage, and the media type, by the Accept header."""
    registry = CollectorRegistry(auto_describe=False)
    memory = [_resident_bytes(process) for process in processes]
    gauges = {**storage_gauges, (PROCESSES, ()): len(memory), (MEMORY, ()): sum(memory)}
    registry.register(_SnapshotCollector(counted, gauges))
    encode, media_type = choose_encoder(accept)
    return encode(registry), media_type


class _SnapshotCollector(Collector):
    """The metrics of one response."""

    def __init__(self, counted: Mapping[str, Metric], gauges: Gauges) -> None:
        self._counted = counted
        self._gauges = gauges

    def collect(self) -> Iterator[Metric]:
        """All families, including those without samples, which the library would leave out."""
        for family in FAMILIES:
            kind = "histogram" if family.buckets else "counter" if family in COUNTER_FAMILIES else "gauge"
            metric = Metric(family.name, family.documentation, kind)
            samples = self._counted[family.name].samples if family.name in self._counted else ()
            if family is WORKERS_REPLACED and samples:
                metric.add_sample(f"{family.name}_total", {}, sum(sample.value for sample in samples))
            else:
                # Another version, which runs beside this one during an upgrade, may have other labels.
                labels = {*family.labels, "le"}
                metric.samples = [item for item in samples if {*item.labels, "le"} == labels]
            for (name, values), value in self._gauges.items():
                if name is family:
                    metric.add_sample(name.name, dict(zip(name.labels, values, strict=True)), value)
            yield metric


def _resident_bytes(process: int) -> int:
    """Resident memory of a process in bytes; 0 if the system does not report it."""
    with suppress(OSError), open(f"/proc/{process}/status", encoding="ascii", errors="replace") as status:
        return next((int(line.split()[1]) * 1024 for line in status if line.startswith("VmRSS:")), 0)
    return 0
