"""How a process is reached by its id: through ipyparallel, or whatever has `ids` and `submit`."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from tensornp.core.lowlevel.attributes import an_instance
from tensornp.errors import BadRequestError

Id = Any
"""What a transport calls a process by: a number, or a text."""


def transport_of(client: Any) -> Any:
    """Return what reaches the processes of `client`; BadRequestError where it is none."""
    own = (base for base in type(client).__mro__ if base.__module__.partition(".")[0] == "ipyparallel")
    if any(own):
        return OfIpyparallel(client)
    try:
        ids, submit = client.ids, client.submit
    except Exception:
        # Whatever a class of the user's raises, it is no transport.
        ids = submit = None
    if ids is None or isinstance(client, type) or not callable(submit):
        raise BadRequestError(
            f"ranks takes a client or a view of ipyparallel, or an object with ids and submit(id, function, *args), "
            f"not {an_instance(client)}"
        )
    return client


class OfIpyparallel:
    """The engines of a client of ipyparallel, or those that a view has: of each its own one is asked."""

    def __init__(self, client: Any) -> None:
        self._client = getattr(client, "client", client)
        targets = getattr(client, "targets", None)
        self._targets = [targets] if isinstance(targets, int) else targets
        self._submitted: set[str] = set()

    @property
    def ids(self) -> list[int]:
        """The engines that are registered, or are those of the view."""
        return list(self._targets if isinstance(self._targets, list | tuple) else self._client.ids)

    def submit(self, id: int, function: Callable[..., Any], *args: Any) -> Any:
        """Have one engine call a function: a view of its own has no other to wait for."""
        result = self._client[id].apply_async(function, *args)
        self._submitted.update(result.msg_ids)
        return result

    def running_for(self, id: int) -> float:
        """Return for how many seconds an engine has had work of this client that is none of ours; 0 for none.

        By private names of the client, which would have to ask the hub otherwise; without them it is not told.
        """
        engines, outstanding = (getattr(self._client, name, {}) for name in ("_engines", "_outstanding_dict"))
        given = [self._client.metadata[one] for one in set(outstanding.get(engines.get(id), ())) - self._submitted]
        submitted = [one["submitted"].timestamp() for one in given if one.get("submitted") is not None]
        return max(time.time() - min(submitted), 0.0) if submitted else 0.0
