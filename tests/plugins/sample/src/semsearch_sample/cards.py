"""A reader of cards, one ``NAME: TEXT`` line each."""

from semsearch.corpus import Row, Table
from semsearch.errors import BadRowError


def read_cards(source):
    def rows():
        for number, line in enumerate(source.stream, 1):
            place = f"{source.name}:{number}"
            name, colon, text = line.decode().partition(":")
            if colon:
                yield Row(place, {"id": name, "text": text.strip(), "letters": len(name)})
            else:
                yield BadRowError(place, "no colon")

    return Table(source.name, ["id", "text", "letters"], rows())
