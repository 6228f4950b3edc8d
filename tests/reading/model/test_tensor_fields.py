"""Where a key of a config.json is looked for: the language model's part, what stands around it, the family's defaults."""

from bot.reading.model.tensor_fields import Fields

FIELDS = Fields(
    {"kept": 2, "around": 2, "table": {"inner": 2, "around": 2}},
    {"kept": 1, "around": None, "table": {"inner": 1, "listed": [7, 8]}},
    {"defaults": {"kept": 3, "around": 3, "silent": 3}},
)


def test_a_key_is_read_from_the_nearest_table_that_says_something() -> None:
    assert [FIELDS.raw(key) for key in ("kept", "around", "silent", "nowhere")] == [1, 2, 3, None]
    assert [FIELDS.raw(key) for key in ("table.inner", "table.around", "table.listed.1", "table.nowhere")] == [1, 2, 8, None]
    assert FIELDS.raw("nowhere", 9) == 9
