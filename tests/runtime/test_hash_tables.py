"""Hash tables: against a dict, nearly full ones too."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from fuda.runtime.hash_tables import FREE, slot_of


@given(st.lists(st.integers(0, 2**63 - 1), unique=True, max_size=15), st.integers(0, 2**63 - 1))
def test_every_key_has_a_slot_and_others_a_free_one(keys, other):
    table = np.full(16, FREE, dtype=np.int64)
    for key in keys:
        slot = slot_of(table, key)
        assert table[slot] == FREE
        table[slot] = key
    assert [table[slot_of(table, key)] for key in keys] == keys
    assert table[slot_of(table, other)] == (other if other in keys else FREE)
