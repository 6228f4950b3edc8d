"""A fact that follows from others."""

from bot.domain.evidence import Fact, Speaker

_NOBODY = Speaker(key="")


def stated(kind: str, base: Fact | None, **fields: object) -> Fact:
    """A fact of a kind that rules/derived.toml lists, at the line of the one that it rests on; at line 0 where it rests on none."""
    return Fact(
        id=f"derived.{kind}",
        kinds=frozenset({kind}),
        fields=fields,
        speaker=base.speaker if base else _NOBODY,
        source=base.source if base else 0,
        line=base.line if base else 0,
        text=base.text if base else "",
        order=base.order if base else 0,
    )
