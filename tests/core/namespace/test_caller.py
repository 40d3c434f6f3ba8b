"""The names that whoever calls a function sees."""

from __future__ import annotations

import torch

import tensornp as tnp


def test_code_that_exec_runs_is_told_its_own_names():
    """It may have no `__name__`, as our own silent modules, over which the search for the caller goes."""
    namespace = {"tnp": tnp, "w": torch.ones(3)}
    exec("found = [alias.name for alias in tnp.aliases(w)]", namespace)
    assert namespace["found"] == ["w"]
