"""Threads: one for small tables, and as many as before afterwards."""

from __future__ import annotations

import gc
import sys

import pytest
import torch

from diffan.threads import SMALL_TABLE, modest_threads, no_collection, threads_to_be_had


def test_small_tables_take_one_thread_and_give_the_others_back() -> None:
    before = torch.get_num_threads()
    torch.set_num_threads(3)
    try:
        with modest_threads(SMALL_TABLE):
            assert torch.get_num_threads() == 1
        assert torch.get_num_threads() == 3
        with modest_threads(SMALL_TABLE + 1):
            assert torch.get_num_threads() == 3
        with pytest.raises(KeyError), modest_threads(10):
            raise KeyError
        assert torch.get_num_threads() == 3
    finally:
        torch.set_num_threads(before)


def test_garbage_is_looked_for_again_afterwards_if_it_was_before() -> None:
    assert gc.isenabled()
    with no_collection():
        with no_collection():
            assert not gc.isenabled()
        assert not gc.isenabled()
    with pytest.raises(KeyError), no_collection():
        raise KeyError
    assert gc.isenabled()
    gc.disable()
    try:
        with no_collection():
            pass
        assert not gc.isenabled()
    finally:
        gc.enable()


def test_as_many_threads_as_torch_was_told(monkeypatch: pytest.MonkeyPatch) -> None:
    before = torch.get_num_threads()
    torch.set_num_threads(3)
    try:
        assert threads_to_be_had() == 3
    finally:
        torch.set_num_threads(before)
    monkeypatch.delitem(sys.modules, "torch")
    monkeypatch.setenv("OMP_NUM_THREADS", "5")
    assert threads_to_be_had() == 5
    monkeypatch.setenv("OMP_NUM_THREADS", "many")
    assert threads_to_be_had() >= 1
