"""Requests of clients, and their limits."""

from __future__ import annotations

from typing import Annotated, Any, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, JsonValue, model_validator
from pydantic_core import PydanticCustomError

MAX_CHARACTERS = 10_000  #: of a query
MAX_QUERIES = 100
MAX_HITS = 1_000  #: `offset` + `k`
MAX_ANSWER = 20_000  #: the hits of several queries together
MAX_PAGE = 1_000  #: documents

Mode = Literal["semantic", "bm25", "hybrid"]
Text = Annotated[str, Field(max_length=MAX_CHARACTERS)]
Count = Annotated[int, Field(ge=1, le=MAX_HITS)]

WHERE = Field(default=None, description="A filter, such as: year >= 1990.")
SPACE = Field(default=None, description="The embedding space; the first one by default.")


class SearchRequest(BaseModel):
    """A search for a text, or for several."""

    # Options are described in semsearch.search.options.SearchOptions.
    model_config = ConfigDict(extra="forbid")

    k: Count = Field(default=10, description="The number of hits.")
    offset: int = Field(
        default=0,
        ge=0,
        description="The number of best hits to skip. Pages of an approximate index may overlap.",
    )
    where: str | None = WHERE
    require: list[str] = Field(
        default_factory=list, description="Phrases that some passage of a document must contain."
    )
    mode: Mode = Field(default="semantic", description="Semantic, by words, or both.")
    space: str | None = SPACE
    min_score: float | None = Field(
        default=None, allow_inf_nan=False, description="Drop hits with a lower score."
    )
    explain: bool = Field(default=False, description="Explain hits, and time the search.")
    dense_weight: float = Field(
        default=0.5, ge=0, le=1, description="Weight of the semantic ranking in hybrid search."
    )
    per_document: int = Field(
        default=1, ge=1, le=100, description="The most passages per document."
    )
    collapse_duplicates: bool = Field(
        default=False, description="Drop near-duplicates of better hits."
    )
    mmr: float | None = Field(
        default=None, ge=0, le=1, description="Diversify hits; the weight of relevance."
    )

    query: Text | Annotated[list[Text], Field(min_length=1, max_length=MAX_QUERIES)] = Field(
        description="A text, or several; each has its own result."
    )

    def options(self) -> dict[str, Any]:
        """The arguments of `Index.search_many` without the queries."""
        return self.model_dump(exclude={"query"})

    @model_validator(mode="after")
    def _limited(self) -> Self:
        if self.offset + self.k > MAX_HITS:
            raise PydanticCustomError("hits", f"offset + k can be at most {MAX_HITS:,}")
        if isinstance(self.query, list) and len(self.query) * self.k > MAX_ANSWER:
            raise PydanticCustomError("hits", f"a request returns at most {MAX_ANSWER:,} hits")
        return self


class QueryParameters(SearchRequest):
    """A search for a text."""

    query: Text = Field(description="The text.")


class SimilarRequest(BaseModel):
    """A search for similar documents."""

    model_config = ConfigDict(extra="forbid")

    id: str = Field(description="The id of the document.")
    k: Count = Field(default=10, description="The number of documents.")
    where: str | None = WHERE
    space: str | None = SPACE


class DocumentRequest(BaseModel):
    """A document to add to an index under an id that is given elsewhere."""

    model_config = ConfigDict(extra="forbid")

    text: str = Field(description="The text to search.")
    title: str | None = Field(default=None, description="Shown with hits; not searched.")
    metadata: dict[str, JsonValue] = Field(
        default_factory=dict, description="Fields for filters and display."
    )


class NewDocument(DocumentRequest):
    """A document to add to an index."""

    id: str | None = Field(default=None, description="The id; by default derived from the text.")
