"""The short digest of an agent's instructions, and a name for it that people can remember."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence
from typing import Final

from solid_runs.printable import text as storable_text

DIGEST_LENGTH: Final = 8


def _words(lines: str) -> tuple[str, ...]:
    return tuple(lines.split())


# People know runs by these names: no word may ever be changed, moved, added or taken away.
ADJECTIVES: Final = _words(
    """
    calm amber ample agile airy bold brave breezy bright brisk clear clever cosy crisp dapper deft
    eager early elegant fancy fluffy fond frank fresh gentle glad golden grand handy happy hardy
    honest humble jolly keen kind lively loyal lucid lucky mellow merry mild modest neat nimble
    noble patient plucky polite proud quick quiet serene shiny silver snug steady sunny swift tidy
    vivid warm witty
    """
)
NOUNS: Final = _words(
    """
    heron badger beaver bison camel condor cricket curlew dolphin donkey eagle egret falcon ferret
    finch fox gecko gopher hamster hedgehog ibex iguana jaguar kestrel kiwi koala lemur lizard llama
    lobster lynx magpie marmot mole newt ocelot octopus osprey otter owl panda parrot pelican
    penguin plover puffin quail rabbit raven robin salmon sparrow squirrel stork swallow swan tapir
    tiger toucan turtle walrus weasel wombat zebra
    """
)

_HEXADECIMAL: Final = re.compile("[0-9a-fA-F]+")


def digest(text: str | None) -> str | None:
    """Return the first 8 hex digits of SHA-256 over the UTF-8 of ``text``; None for blank or None.

    Rails takes the same digest, so its rows group with these. Text that no database stores is
    digested as it would be stored, so it has the same digest before and after.
    """
    if text is None or not text.strip():
        return None
    return hashlib.sha256(storable_text(text).encode()).hexdigest()[:DIGEST_LENGTH]


def codename(
    digest: str | None,
    adjectives: Sequence[str] | None = None,
    nouns: Sequence[str] | None = None,
) -> str | None:
    """Return the "adjective-noun" of a digest; None for None, blank or what is not hexadecimal.

    The number that the digest is chooses the adjective by its remainder, and what is left of it the
    noun, each by the length of its own list. No list, or an empty one, means the list above.
    """
    written = (digest or "").strip()
    if not _HEXADECIMAL.fullmatch(written):
        return None
    first, second = adjectives or ADJECTIVES, nouns or NOUNS
    rest, place = divmod(int(written, 16), len(first))
    return f"{first[place]}-{second[rest % len(second)]}"
