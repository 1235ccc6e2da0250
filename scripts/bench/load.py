"""Clients of a service, which scripts/bench/serve runs in a process of their own.

    python -m scripts.bench.load KIND ADDRESS QUERIES.txt 1,8,64 SECONDS

Each client sends its next query when the previous one is answered. Prints as JSON the hits of the
first queries and, for each number of clients, throughput and latency.
"""

from __future__ import annotations

import asyncio
import json
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from itertools import count
from pathlib import Path
from typing import Any, NamedTuple

import numpy

from scripts.bench.one_peer import HITS, bundled_model

#: Queries sent one by one beforehand, whose answers are compared.
COMPARED = 50
#: How long the clients run before the measurement begins.
WARM_SECONDS = 1.5


class Client(NamedTuple):
    """How to query a service.

    Args:
        ask: sends the query of a number; returns the raw answer.
        ids: returns the document ids of an answer.
    """

    ask: Callable[[int], Awaitable[Any]]
    ids: Callable[[Any], list[str]]


def main() -> None:
    """Run the clients, and print the figures."""
    kind, address, file, clients, seconds = sys.argv[1:]
    queries = Path(file).read_text("utf-8").splitlines()
    numbers = [int(number) for number in clients.split(",")]
    print(json.dumps(asyncio.run(measured(kind, address, queries, numbers, float(seconds)))))


async def measured(
    kind: str, address: str, queries: Sequence[str], numbers: Sequence[int], seconds: float
) -> dict[str, Any]:
    """The hits of the first queries, and the figures for each number of clients."""
    asyncio.get_running_loop().set_default_executor(ThreadPoolExecutor(max(numbers)))
    async with KINDS[kind](address, queries) as client:
        compared = range(min(COMPARED, len(queries)))
        found = [client.ids(await client.ask(number)) for number in compared]
        loads = [await under_load(client.ask, len(queries), number, seconds) for number in numbers]
    return {"found": found, "loads": loads}


async def under_load(
    ask: Callable[[int], Awaitable[Any]], queries: int, clients: int, seconds: float
) -> dict[str, float]:
    """The figures of concurrent clients over some seconds.

    Returns:
        The answers a second, the median and the 99th percentile of the latency, the cores that this
        process kept busy, and the number of requests that failed.
    """
    numbers = count()
    taken: list[float] = []
    failed = 0
    begin = time.perf_counter() + WARM_SECONDS
    end = begin + seconds

    async def one_client() -> None:
        nonlocal failed
        while (asked := time.perf_counter()) < end:
            try:
                await ask(next(numbers) % queries)
            except Exception:  # any: whatever the service's library raises is counted
                failed += 1
                continue
            if begin <= (answered := time.perf_counter()) <= end:
                taken.append(answered - asked)

    async def busy() -> float:
        await asyncio.sleep(begin - time.perf_counter())
        before = time.process_time()
        await asyncio.sleep(end - time.perf_counter())
        return time.process_time() - before

    processor, *_ = await asyncio.gather(busy(), *(one_client() for _ in range(clients)))
    p50, p99 = numpy.percentile(taken, [50, 99]).tolist() if taken else (seconds, seconds)
    return {
        "rate": len(taken) / seconds,
        "p50_seconds": p50,
        "p99_seconds": p99,
        "client_cores": processor / seconds,
        "failed": failed,
    }


@asynccontextmanager
async def asked_of_ours(address: str, queries: Sequence[str]) -> AsyncIterator[Client]:
    """`semsearch serve`, which has one index."""
    async with http(address) as (session, ask):
        async with session.get("/v1/indexes") as response:
            (index,) = await response.json()
        place = f"/v1/indexes/{index['name']}/search"
        yield Client(
            lambda number: ask("GET", place, params={"query": queries[number], "k": HITS}),
            lambda answer: [hit["id"] for hit in json.loads(answer)["hits"]],
        )


@asynccontextmanager
async def asked_of_txtai(address: str, queries: Sequence[str]) -> AsyncIterator[Client]:
    """`uvicorn txtai.api:app`."""
    async with http(address) as (_, ask):
        yield Client(
            lambda number: ask("GET", "/search", params={"query": queries[number], "limit": HITS}),
            lambda answer: [hit["id"] for hit in json.loads(answer)],
        )


@asynccontextmanager
async def asked_of_chroma(address: str, queries: Sequence[str]) -> AsyncIterator[Client]:
    """`chroma run` with its own client, which encodes here and sends vectors; one thread each."""
    import chromadb
    from chromadb.utils.embedding_functions import SentenceTransformerEmbeddingFunction

    host, _, port = address.removeprefix("http://").partition(":")
    settings = chromadb.Settings(anonymized_telemetry=False)
    collection = chromadb.HttpClient(host, int(port), settings=settings).get_collection(
        "texts",
        embedding_function=SentenceTransformerEmbeddingFunction(
            str(bundled_model()), normalize_embeddings=True
        ),
    )
    yield Client(
        lambda number: asyncio.to_thread(
            collection.query, query_texts=[queries[number]], n_results=HITS
        ),
        lambda answer: answer["ids"][0],
    )


@asynccontextmanager
async def http(address: str) -> AsyncIterator[tuple[Any, Callable[..., Awaitable[bytes]]]]:
    """A session with a service, and a function that sends a request and returns the body."""
    import aiohttp

    async with aiohttp.ClientSession(
        address, connector=aiohttp.TCPConnector(limit=0), raise_for_status=True
    ) as session:

        async def ask(method: str, place: str, **options: Any) -> bytes:
            async with session.request(method, place, **options) as response:
                return await response.read()

        yield session, ask


KINDS: dict[str, Callable[[str, Sequence[str]], AbstractAsyncContextManager[Client]]] = {
    "ours": asked_of_ours,
    "txtai": asked_of_txtai,
    "chroma": asked_of_chroma,
}


if __name__ == "__main__":
    main()
