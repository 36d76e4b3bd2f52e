"""What a supervisor tells a generation of workers, in one word of its command line."""

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass


@dataclass(frozen=True)
class Plan:
    """The ini file and its variables, the web server, and numbers of open files.

    ``sockets`` are those of each worker, ``counted`` where [server:main] says how many and no word of the command line.
    ``lifeline`` ends with the supervisor. A byte is written to ``ready`` once all workers answer.
    """

    ini: str
    variables: Mapping[str, str]
    server: str
    #: Where the supervisor listens, in the words of [server:main].
    where: Mapping[str, str]
    sockets: tuple[tuple[int, ...], ...]
    counted: bool = False
    lifeline: int = -1
    ready: int = -1

    def to_json(self) -> str:
        """As text."""
        return json.dumps(asdict(self))

    @classmethod
    def from_json(cls, text: str) -> "Plan":
        """From text that was made of one."""
        members = json.loads(text)
        return cls(**members | {"sockets": tuple(tuple(one) for one in members["sockets"])})
