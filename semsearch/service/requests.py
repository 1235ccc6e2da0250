"""Requests of clients."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, JsonValue
from pydantic_core import PydanticCustomError


def _no_boolean(value: Any) -> Any:
    if isinstance(value, bool):
        raise PydanticCustomError("number_type", "Input should be a number, not true or false")
    return value


NUMBER = BeforeValidator(_no_boolean)
Mode = Literal["semantic", "bm25", "hybrid"]


class SearchRequest(BaseModel):
    """A search; see `semsearch.search.queries.SearchOptions`."""

    model_config = ConfigDict(extra="forbid")

    query: str | list[str] = Field(description="A text, or several; each has its own result.")
    k: Annotated[int, NUMBER] = Field(default=10, ge=1, description="The number of hits.")
    offset: Annotated[int, NUMBER] = Field(
        default=0,
        ge=0,
        description="The number of best hits to skip. Pages of an approximate index may overlap.",
    )
    where: str | None = Field(default=None, description="A filter, such as: year >= 1990.")
    require: list[str] = Field(
        default_factory=list, description="Phrases that some passage of a document must contain."
    )
    mode: Mode = Field(default="semantic", description="Semantic, by words, or both.")
    space: str | None = Field(
        default=None, description="The embedding space; the first one by default."
    )
    min_score: Annotated[float | None, NUMBER] = Field(
        default=None, allow_inf_nan=False, description="Drop hits with a lower score."
    )
    explain: bool = Field(default=False, description="Explain hits, and time the search.")
    fusion: Literal["zscores", "rrf"] = Field(
        default="zscores", description="The fusion of hybrid search."
    )
    dense_weight: Annotated[float, NUMBER] = Field(
        default=0.5, ge=0, le=1, description="Weight of the semantic ranking in hybrid search."
    )
    per_document: Annotated[int, NUMBER] = Field(
        default=1, ge=1, le=100, description="The most passages per document."
    )
    collapse_duplicates: bool = Field(
        default=False, description="Drop near-duplicates of better hits."
    )
    mmr: Annotated[float | None, NUMBER] = Field(
        default=None, ge=0, le=1, description="Diversify hits; the weight of relevance."
    )

    def options(self) -> dict[str, Any]:
        """The arguments of `Index.search_many` without the queries."""
        return self.model_dump(exclude={"query"})

    def queries(self) -> list[str]:
        """The texts as a list."""
        return [self.query] if isinstance(self.query, str) else self.query


class SearchParameters(SearchRequest):
    """A search in the query string of a URL."""

    query: list[str] = Field(description="A text; if repeated, each has its own result.")


class SimilarRequest(BaseModel):
    """A search for similar documents."""

    model_config = ConfigDict(extra="forbid")

    k: Annotated[int, NUMBER] = Field(default=10, ge=1, description="The number of documents.")
    where: str | None = Field(default=None, description="A filter, such as: year >= 1990.")
    space: str | None = Field(
        default=None, description="The embedding space; the first one by default."
    )


class DocumentRequest(BaseModel):
    """A document to add to an index."""

    model_config = ConfigDict(extra="forbid")

    text: str = Field(description="The text to search.")
    title: str | None = Field(default=None, description="Shown with hits; not searched.")
    metadata: dict[str, JsonValue] = Field(
        default_factory=dict, description="Fields for filters and display."
    )
