"""The MCP tools for agents, called through the SDK's client."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys

import pytest
from birds import asking

from semsearch import Document, Index

pytest.importorskip("mcp", reason="agents need the extra 'mcp'")
from mcp import Client, StdioServerParameters

from semsearch.service.agents import NOTE, create_server
from semsearch.service.worker import Worker

CLIENT = {"name": "test", "version": "1"}
LONG = "a long story of birds.\n" * 1500


@pytest.fixture
def server(path):
    with Index.open(path) as index:
        index.add([Document("long", LONG)])
    worker = Worker(path)
    yield create_server({"birds": worker})
    worker.close()


def use(server, *calls):
    """The results of tool calls, in order, and the list of tools."""

    async def used():
        async with Client(server) as client:
            tools = (await client.list_tools()).tools
            return [await client.call_tool(*call) for call in calls], tools

    return asyncio.run(used())


def answer_of(server, *call):
    (result,), _ = use(server, call)
    assert not result.is_error, result.content
    return result.structured_content


def test_the_tools_only_read(server):
    _, tools = use(server)
    names = ["search", "get", "find_similar", "describe_indexes"]
    assert [tool.name for tool in tools] == names
    for tool in tools:
        assert tool.annotations.read_only_hint
        assert not tool.annotations.destructive_hint
        assert tool.description
        assert tool.input_schema["additionalProperties"] is False
    assert tools[0].input_schema["properties"]["k"]["maximum"] == 50
    described = answer_of(server, "describe_indexes", {})["indexes"]["birds"]
    assert described["documents"] == 4
    assert described["fields"]["year"]["example"] in (1999, 2005, 2010)


def test_search(server):
    found = answer_of(server, "search", {"query": "red bird", "k": 1})
    assert found["note"] == NOTE
    (hit,) = found["hits"]
    assert (hit["id"], hit["title"], hit["text"]) == ("a", "Robin", "a red bird sings")
    assert hit["metadata"] == {"year": 1999, "tags": ["red"]}
    for options, ids in (
        ({"require": ["bird sings"]}, ["a"]),
        ({"where": "year = 2005"}, ["b"]),
        ({"mode": "bm25"}, ["a", "c/1", "long"]),
    ):
        found = answer_of(server, "search", {"query": "red bird", **options})
        assert [hit["id"] for hit in found["hits"]] == ids
    found = answer_of(server, "find_similar", {"id": "a", "k": 1, "where": "year > 1"})
    assert [hit["id"] for hit in found["hits"]] == ["c/1"]
    for tool, named in (("search", {"query": "bird"}), ("find_similar", {"id": "a"})):
        found = answer_of(server, tool, named | {"where": "year > 3000"})
        assert (found["hits"], found["warnings"]) == ([], ["no document matches the filter"])


def test_addresses_and_surroundings(path):
    lines = [f"line {n} of a story of birds" for n in range(1, 1001)]
    with Index.open(path) as index:
        index.add([Document("story.md", "\n".join(lines)), Document("p.pdf#page=3", "an owl")])
    worker = Worker(path)
    server = create_server({"birds": worker})
    question = {"query": '"line 500"', "mode": "bm25", "k": 1}
    (hit,) = answer_of(server, "search", question)["hits"]
    name, _, line = hit["address"].partition(":")
    assert name == "story.md"
    assert lines[int(line) - 1].endswith(hit["text"].splitlines()[0])
    assert lines[499] in hit["text"]
    asked = {"id": "story.md", "start": hit["start"], "end": hit["end"]}
    around = answer_of(server, "get", asked)
    before, passage, after = around["text"].partition(hit["text"])
    assert (passage, len(before), len(after)) == (hit["text"], 1_000, 1_000)
    assert around["text"] in "\n".join(lines)
    assert around["next_start"] == hit["end"] + 1_000
    (hit,) = answer_of(server, "search", {"query": "owl", "mode": "bm25"})["hits"]
    assert hit["address"] == "p.pdf#page=3"
    worker.close()


def test_a_long_document_is_fetched_in_parts(server):
    text, start = "", 0
    while start is not None:
        part = answer_of(server, "get", {"id": "long", "start": start})
        assert (part["id"], part["title"], part["metadata"]) == ("long", None, {})
        assert len(part["text"]) <= 20_000
        text, start = text + part["text"], part["next_start"]
    assert text == LONG
    assert answer_of(server, "get", {"id": "a"})["next_start"] is None


@pytest.mark.parametrize(
    ("call", "expected"),
    [
        (("search", {"query": "x", "where": "yaer > 1"}), "[invalid-filter]"),
        (("search", {"query": "x", "k": 51}), "50"),
        (("search", {"query": "x", "filter": "year = 1900"}), "filter"),
        (("search", {"query": "x", "index": "cats"}), "[index-not-found]"),
        (("get", {"id": "z"}), "[document-not-found]"),
        (("find_similar", {"id": "z"}), "[document-not-found]"),
    ],
)
def test_errors_are_returned_to_the_agent(server, call, expected):
    (result,), _ = use(server, call)
    assert result.is_error
    assert expected in result.content[0].text


def test_the_command_over_standard_input_and_output(path):
    arguments = ["-m", "semsearch", "serve", "--mcp", "--index", str(path)]
    command = StdioServerParameters(command=sys.executable, args=arguments)
    found = answer_of(command, "search", {"query": "red bird", "k": 1})
    assert found["hits"][0]["id"] == "a"


def test_all_that_was_asked_before_the_input_ended_is_answered(path, tmp_path):
    hello = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": CLIENT}
    search = {"name": "search", "arguments": {"query": "red bird", "k": 1, "index": "birds"}}
    messages = [
        {"id": 0, "method": "initialize", "params": hello},
        {"method": "notifications/initialized"},
        {"id": 1, "method": "tools/list"},
        *({"id": n, "method": "tools/call", "params": search} for n in range(2, 6)),
        {"method": "notifications/cancelled", "params": {"requestId": 5}},
        {"id": "last", "method": "ping"},
    ]
    lines = [json.dumps({"jsonrpc": "2.0"} | message) for message in messages]
    Index.create(tmp_path / "damaged", "hashing").close()
    (tmp_path / "damaged/index.sqlite").write_bytes(b"no database" * 100)
    indexes = [f"--index={path}", f"--index={tmp_path / 'damaged'}"]
    done = subprocess.run(
        [sys.executable, "-m", "semsearch", "serve", "--mcp", *indexes],
        input="\n".join([*lines, "no message", ""]),
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    answers = {one.get("id"): one for one in map(json.loads, done.stdout.splitlines())}
    assert answers.keys() >= {0, 1, 2, 3, 4, "last"}
    for n in range(2, 5):
        assert answers[n]["result"]["structuredContent"]["hits"][0]["id"] == "a"


def test_over_http(path):
    call = {"name": "search", "arguments": {"query": "red bird", "k": 1}}
    request = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": call}
    headers = {"Accept": "application/json, text/event-stream"}
    with asking({"birds": path}) as client:
        answer = client.post("/mcp", json=request, headers=headers).json()
        assert answer["result"]["structuredContent"]["hits"][0]["id"] == "a"
        foreign = client.post("/mcp", json=request, headers=headers | {"Host": "evil.example"})
        assert foreign.status_code == 400
        # A stream of events would carry nothing, and count as a running request.
        assert client.get("/mcp", headers={"Accept": "text/event-stream"}).status_code == 405
