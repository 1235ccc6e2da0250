"""English function words, which say little about what a query means."""

from __future__ import annotations

#: In lower case, with what is left of contractions (don't is "don" and "t"). Left out are those
#: that often carry meaning, such as us, who, it, will, may, no, only, without, after.
_WORDS = (
    # Articles and determiners.
    "a an the this that these those some any each every either neither both all such same "
    # Pronouns.
    "i me my mine myself we our ours ourselves you your yours yourself yourselves he him his "
    "himself she her hers herself its itself they them their theirs themselves one "
    "what which whom whose whoever whatever whichever "
    # Auxiliaries.
    "am is are was were be been being do does did doing done have has had having "
    "would could should shall might must ought cannot "
    "aren couldn didn doesn don hadn hasn haven isn mustn shouldn wasn weren won wouldn "
    "s t d m ll re ve "
    # Conjunctions and particles.
    "and or nor but if then else than as so because while although though unless until whether "
    "not also too very just even still yet however therefore thus hence "
    "when where why how there here "
    # Prepositions.
    "of in on at by for from to into onto upon"
)
ENGLISH = frozenset(_WORDS.split())
