"""What lies in a folder and below it that looks like weights: its components, and what is passed over."""

from __future__ import annotations

import os
import re
from collections import defaultdict, deque
from pathlib import Path

from tensornp.models.entries.not_listed import NotListed, NotOfModule
from tensornp.models.formats.dcp.names import ITEMS_SUFFIX, METADATA
from tensornp.models.formats.offloaded import OFFLOAD_INDEX, OFFLOAD_SUFFIX
from tensornp.models.formats.table import SAFETENSORS, model_suffixes
from tensornp.models.names.quoted import shown_names

_MAX_FOLDERS = 5_000
_OF_COMPONENTS = (re.compile(rf".*{re.escape(SAFETENSORS)}"), re.compile(r".*/[^/]*model[^/]*\.bin"))
"""The paths of files of components: of both kinds, the first is taken. What else ends in ``.bin`` may be any data."""
_OF_TORCH = re.compile(r"(pytorch_)?(?P<stem>(\w+_)?model)([.-].*)?\.bin")
_OF_OPTIMIZER = re.compile(r"optimizer(_\d+)?\.(bin|pt)")
_CHECKPOINT = re.compile(r"(checkpoint|epoch|(global_?)?step)s?([-_=]?\d+)?")
"""Folders to which a training saves from time to time."""
_NO_WEIGHTS = re.compile(r"training_args\.bin|scheduler(_\d+)?\.(bin|pt)|scaler\.pt|rng_state(_\d+)?\.pth")
"""What a training keeps in files of torch: arguments, the state of its generators and of what has no tensors."""


class Below:
    """The files of a folder, and of those below it, whose names are those of weights."""

    def __init__(self, folder: Path) -> None:
        self._problems: list[str] = []
        self._paths = self._looked_for(folder)

    def at_top(self) -> list[str]:
        """Return the names of those that lie in the folder itself."""
        return [path for path in self._paths if "/" not in path]

    def components(self, *, has_top: bool) -> dict[str, str]:
        """Return which files hold the components, with what their names begin with.

        Checkpoints of a training are some only where nothing else is there.
        """
        files: defaultdict[str, list[str]] = defaultdict(list)
        for path in self._paths:
            if path.count("/") == 1:
                files[path.partition("/")[0]].append(path)
        found: dict[str, list[str]] = {}
        for name, paths in files.items():
            kinds = ([path for path in paths if kind.fullmatch(path)] for kind in _OF_COMPONENTS)
            if own := next(filter(None, kinds), None):
                found[name] = own
        lasting = [name for name in found if not _CHECKPOINT.fullmatch(name)]
        wanted = lasting if has_top or lasting else list(found)
        return {path: f"{name}." for name in wanted for path in found[name]}

    def passed_over(self, taken: list[str]) -> list[str]:
        """Return in sentences which files are not among those that were read."""
        read = {os.path.normpath(path) for path in taken}
        entered = {path.partition("/")[0] for path in taken}
        left = [path for path in self._paths if os.path.normpath(path) not in read]
        heads = [(path, path.partition("/")[0]) for path in left]
        saved = dict.fromkeys(
            head for path, head in heads if path != head and head not in entered and _CHECKPOINT.fullmatch(head)
        )
        others = [path for path, head in heads if head not in saved]
        besides = [path for path in others if _OF_OPTIMIZER.fullmatch(path) or _has_twin(path, read)]
        return [
            *map(
                NotOfModule,
                told_as_left(list(saved), "a checkpoint of a training and ", "checkpoints of a training and "),
            ),
            *told_as_left([path for path in others if path not in besides]),
            *map(NotOfModule, told_as_left(besides)),
            *self._problems,
        ]

    def _looked_for(self, folder: Path) -> list[str]:
        """Return by their paths what may hold weights: files, and folders of which one is read as a whole."""
        found: list[str] = []
        seen: set[tuple[int, int]] = set()
        left = deque([""])
        while left:
            if len(seen) == _MAX_FOLDERS:
                many = f"{str(folder)!r} has more than {_MAX_FOLDERS:,} folders below it, and not all are looked into"
                self._problems.append(NotListed(many))
                break
            at = left.popleft()
            try:
                there = os.stat(folder / at)
                # Links may lead in a circle.
                if (there.st_dev, there.st_ino) in seen:
                    continue
                seen.add((there.st_dev, there.st_ino))
                with os.scandir(folder / at) as ones:
                    is_folder = {one.name: _is_folder(one) for one in sorted(ones, key=lambda one: one.name)}
            except OSError:
                found.append(f"{at}/")
                continue
            if at and _is_whole(list(is_folder)):
                found.append(f"{at}/")
                continue
            for name, is_one in is_folder.items():
                path = f"{at}/{name}" if at else name
                if is_one:
                    # What is hidden is a cache, or the history of a repository.
                    left.extend([] if name.startswith(".") else [path])
                elif name.lower().endswith(model_suffixes()) and not _NO_WEIGHTS.fullmatch(name):
                    found.append(path)
        return found


def _has_twin(path: str, read: set[str]) -> bool:
    """Return whether a file of torch is named as one of safetensors beside it, as where a model is saved in both."""
    folder, _, name = path.rpartition("/")
    model = _OF_TORCH.fullmatch(name)
    beside = (one.rpartition("/")[2] for one in read if one.rpartition("/")[0] == folder)
    return model is not None and any(one.startswith(model["stem"]) and one.endswith(SAFETENSORS) for one in beside)


def _is_folder(one: os.DirEntry[str]) -> bool:
    # A link that leads to itself raises, and would hide what lies beside it.
    return one.is_dir(follow_symlinks=False) or (one.is_symlink() and os.path.isdir(one.path))


def _is_whole(names: list[str]) -> bool:
    """Return whether a folder is one checkpoint of torch.distributed.checkpoint, or one of offloaded weights."""
    is_offloaded = OFFLOAD_INDEX in names and any(name.endswith(OFFLOAD_SUFFIX) for name in names)
    return METADATA in names or any(name.endswith(ITEMS_SUFFIX) for name in names) or is_offloaded


def told_as_left(paths: list[str], one: str = "", several: str = "") -> list[str]:
    """Return in a sentence that these are not listed, and in words before that what they are."""
    if not paths:
        return []
    said = f"is {one}not listed; open it by its path"
    return [
        NotListed(
            f"{shown_names(paths)} {said if len(paths) == 1 else f'are {several}not listed; open them by their paths'}"
        )
    ]
