"""Measures how many mutants the tests of each room kill, with line and branch coverage.

A mutant is the package with one small change by an operator of Cosmic Ray, such as `<` to `<=`.
A seed draws places in the code, each equally likely, and for each place one of its changes; a
place's rank depends on the text of its line only, so that most of the sample stays the same while
the code around it changes. Not drawn: annotations, `if TYPE_CHECKING`, protocols and
overloads.

Each room's tests are run once, with coverage recorded by test and in child processes. Each mutant
then meets the tests of its room that execute its line, in a copy of the checkout, until one fails.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import warnings
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator
from contextlib import suppress
from difflib import unified_diff
from pathlib import Path
from resource import RLIMIT_DATA, RLIMIT_FSIZE, RUSAGE_CHILDREN, getrusage, prlimit
from typing import Any, NamedTuple

import parso
import pytest
from cosmic_ray.ast import ast_nodes
from cosmic_ray.mutating import mutate_code
from cosmic_ray.plugins import get_operator, operator_names
from coverage import Coverage, CoverageData
from parso.tree import BaseNode, NodeOrLeaf

from .mutants_plugin import CHILD, FACTOR

ROOT = Path(__file__).parents[2]

#: What is mutated, and the tests that are to notice.
ROOMS = {
    "storage": ("semsearch/storage", "tests/storage"),
    "indexing": ("semsearch/indexing", "tests/indexing tests/crash tests/test_index.py"),
    "search": ("semsearch/search", "tests/search"),
    "filters": ("semsearch/filters", "tests/filters"),
    "vector_indexes": ("semsearch/vector_indexes", "tests/vector_indexes"),
    "corpus": ("semsearch/corpus", "tests/corpus"),
    "evaluation": ("semsearch/evaluation", "tests/evaluation"),
    "encoders": ("semsearch/encoders", "tests/encoders"),
}

#: Outcomes of mutants that the tests noticed.
KILLED = ("killed", "timed out")

#: A mutant meets at least so many tests, then more up to so many seconds: one of each test
#: function before further parameters, the fastest first.
TESTS, SECONDS = 40, 60.0
#: Seconds of these tests that run first: most mutants need no more.
FIRST_SECONDS = 8.0
#: Seconds that starting pytest and collecting may take.
START = 300
#: Bytes of memory, and of one file, for each process of a mutant: it may allocate without end.
BYTES = 8 << 30

PYTEST = ["pytest", "-q", "-n", "0", "-p", "no:randomly", "-p", "no:cacheprovider", "--seed", "1"]
PLUGIN = ["-p", "scripts.dev.mutants_plugin"]
COVERAGE = """\
[run]
branch = true
parallel = true
patch = fork, _exit
context = ${{MUTANTS_CONTEXT}}
source = {tree}/semsearch
data_file = {data}
disable_warnings = no-data-collected, module-not-measured, module-not-imported

[report]
exclude_also = if TYPE_CHECKING:
"""

OPERATORS = {
    name: operator()
    for name in sorted(operator_names())
    if not (operator := get_operator(name)).arguments()
}
#: Most of the operators; they change only these two types of nodes.
REPLACEMENTS = re.compile("Replace(Binary|Comparison)Operator")
FEWER = {name: one for name, one in OPERATORS.items() if not REPLACEMENTS.search(name)}


class Place(NamedTuple):
    """A place in the code, with the changes that can be made there.

    Attributes:
        line: number of its first line.
        scopes: lines whose tests may notice a change: the place's, or what stands for them.
        changes: names of operators, each with the occurrence in the file that is this place.
    """

    room: str
    file: str
    line: int
    scopes: dict[str, Collection[int]]
    description: str
    changes: list[tuple[str, int]]


class Mutant(NamedTuple):
    """One change at a place."""

    key: str
    place: Place
    operator: str
    original: str
    code: str


class Tests:
    """A room's tests, by the lines that they execute."""

    def __init__(self, record: Path, data_file: Path) -> None:
        recorded = json.loads(record.read_text("utf-8"))
        self._fixtures: dict[str, float] = recorded["fixtures"]
        self._passed: dict[str, dict[str, Any]] = {
            name: test for name, test in recorded["tests"].items() if test["outcome"] == "passed"
        }
        self._data = CoverageData(str(data_file))
        self._data.read()
        self._users = defaultdict(set)
        for name, test in self._passed.items():
            for fixture in test["fixtures"]:
                self._users[f"fixture:{fixture}"].add(name)
        contexts = {context for context in self._data.measured_contexts() if "process:" in context}
        self._with_processes = self._of(contexts)

    def of(self, file: Path, place: Place) -> tuple[str, list[str]]:
        """How the tests for a place were chosen, and their names in the order to run them."""
        contexts = self._data.contexts_by_lineno(str(file))
        for how, lines in place.scopes.items():
            if tests := self._of({one for line in lines for one in contexts.get(line, ())}):
                return how, self._in_order(tests)
        if "module" in place.scopes:  # of what is run at import, no test is the only one
            return "room", self._in_order(set(self._passed))
        # Children that are killed leave no coverage.
        return "processes", self._in_order(self._with_processes)

    def _of(self, contexts: set[str]) -> set[str]:
        found = set()
        for context in contexts:
            name = context.removeprefix("process:")
            found |= self._users[name] if name.startswith("fixture:") else {name}
        return found & self._passed.keys()

    def _in_order(self, tests: set[str]) -> list[str]:
        functions = defaultdict(list)
        for name in sorted(tests, key=lambda name: (self.seconds([name]), name)):
            functions[name.partition("[")[0]].append(name)
        ranks = {name: rank for group in functions.values() for rank, name in enumerate(group)}
        return sorted(tests, key=lambda name: (ranks[name], self.seconds([name]), name))

    def seconds(self, names: list[str]) -> float:
        """The time that these tests take without a mutant, with the fixtures that they share."""
        fixtures = {fixture for name in names for fixture in self._passed[name]["fixtures"]}
        return sum(self._passed[name]["seconds"] for name in names) + sum(
            self._fixtures.get(fixture, 0) for fixture in fixtures
        )


def main() -> None:
    """Measure, and print the tables."""
    form = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser("scripts/dev/mutants", None, __doc__, formatter_class=form)
    add = parser.add_argument
    add("rooms", nargs="*", metavar="ROOM", help=f"{', '.join(ROOMS)} (all)")
    add("--sample", type=int, default=300, help="number of mutants (300)")
    add("--seed", type=int, default=1, help="seed of the sample (1)")
    default = ROOT / "build" / "mutants"
    add("--results", type=Path, default=default, help="a run that finds this folder continues")
    arguments = parser.parse_args()
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # kill the tests, as after Ctrl-C
    rooms = arguments.rooms or list(ROOMS)
    if unknown := set(rooms) - ROOMS.keys():
        parser.error(f"no such room: {', '.join(unknown)}")
    results = arguments.results.resolve()
    tree = results / "tree"
    if not tree.exists():
        copy_checkout(tree)
    for room in rooms:
        if not (results / f"{room}.json").exists():
            measure_coverage(room, tree, results)
    sample = draw(tree, rooms, arguments.sample, arguments.seed)
    tests = {room: Tests(results / f"{room}.json", results / f"{room}.coverage") for room in rooms}
    outcomes = test_mutants(sample, tests, results)
    report(rooms, sample, outcomes, results)


def copy_checkout(tree: Path) -> None:
    """Copy the checkout's tracked files, as they are now."""
    names = subprocess.check_output(["git", "ls-files", "-z"], cwd=ROOT, text=True)  # noqa: S607
    part = tree.with_suffix(".part")
    for name in filter(None, names.split("\0")):
        (part / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(ROOT / name, part / name)
    part.rename(tree)


def measure_coverage(room: str, tree: Path, results: Path) -> None:
    """Run a room's tests once, and write which test executed which line."""
    configuration, data_file = results / f"{room}.ini", results / f"{room}.coverage"
    for left in results.glob(f"{data_file.name}*"):  # by a run that was stopped
        left.unlink()
    configuration.write_text(COVERAGE.format(tree=tree, data=data_file), "utf-8")
    command = ["coverage", "run", f"--rcfile={configuration}", "-m", *PYTEST, *PLUGIN]
    command += ["--durations=40", *ROOMS[room][1].split()]
    variables = {
        "COVERAGE_PROCESS_START": str(configuration),
        "MUTANTS_RECORD": str(results / f"{room}.part"),
        CHILD: "",
    }
    log = results / f"{room}.log"
    print(f"{room}: running its tests with coverage; output in {log}", flush=True)
    began, before = time.monotonic(), getrusage(RUSAGE_CHILDREN)
    run(command, tree, variables, log, timeout=None)
    after = getrusage(RUSAGE_CHILDREN)
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    coverage = Coverage(data_file=data_file, config_file=configuration)
    coverage.combine([str(results)])
    coverage.save()
    package = tree / ROOMS[room][0]
    include = [str(package), f"{package}/*"]
    output = results / f"{room}.totals.json"
    coverage.json_report(include=include, outfile=str(output), contexts=[])
    record = json.loads((results / f"{room}.part").read_text("utf-8"))
    record |= {"wall": time.monotonic() - began, "cpu": cpu}
    record |= {"coverage": json.loads(output.read_text("utf-8"))["totals"]}
    (results / f"{room}.json").write_text(json.dumps(record, indent=1), "utf-8")
    print(table([coverage_row(room, results)]), flush=True)


def draw(tree: Path, rooms: list[str], number: int, seed: int) -> list[Mutant]:
    """Draw mutants that compile."""
    found = [place for room in rooms for place in places(tree, room)]
    repeated: Counter[str] = Counter()
    ranked = []
    for place in found:
        repeated[place.description] += 1
        key = digest(seed, place.description, repeated[place.description])
        ranked.append((key, place))
    print(f"{len(found)} places in {', '.join(rooms)}", flush=True)
    sample: list[Mutant] = []
    for key, place in sorted(ranked):
        if len(sample) == number:
            break
        original = (tree / place.file).read_text("utf-8")
        order = sorted(range(len(place.changes)), key=lambda number: digest(key, number))
        for name, occurrence in (place.changes[number] for number in order):
            code = original
            with suppress(AttributeError):  # Cosmic Ray 8.7 fails at `except csv.Error`
                code = mutate_code(original, OPERATORS[name], occurrence)
            if code != original and compiles(code):
                sample.append(Mutant(key, place, name.partition("/")[2], original, code))
                break
    return sample


def digest(*parts: object) -> str:
    return hashlib.sha256(repr(parts).encode()).hexdigest()[:16]


def compiles(code: str) -> bool:
    with warnings.catch_warnings(), suppress(SyntaxError):
        warnings.simplefilter("ignore")
        compile(code, "mutant", "exec")
        return True
    return False


def places(tree: Path, room: str) -> Iterator[Place]:
    """All places in a room that an operator can change."""
    package = tree / ROOMS[room][0]
    for path in [package] if package.is_file() else sorted(package.rglob("*.py")):
        root = parso.parse(path.read_text("utf-8"))
        lines = root.get_code().splitlines()
        bodies = function_lines(root)
        counts: Counter[str] = Counter()
        here: dict[tuple[Any, ...], Place] = {}
        for node, live in walk(root, True):
            many = node.type in ("operator", "comparison")
            for name, operator in (OPERATORS if many else FEWER).items():
                for start, end in operator.mutation_positions(node):
                    change = name, counts[name]
                    counts[name] += 1
                    place = start, end, name.partition("_")[0]
                    if live and place not in here:
                        text = f"{qualified_name(node)}: {lines[start[0] - 1].strip()} {place[2]}"
                        scopes = surroundings(node, range(start[0], end[0] + 1), bodies)
                        file = str(path.relative_to(tree))
                        here[place] = Place(room, file, start[0], scopes, text, [])
                    if live:
                        here[place].changes.append(change)
        yield from here.values()


def walk(node: NodeOrLeaf, live: bool) -> Iterator[tuple[NodeOrLeaf, bool]]:
    """All nodes in the order of Cosmic Ray's, and whether tests can notice a change to them."""
    live = live and not (
        (node.type == "if_stmt" and node.children[1].get_code().strip() == "TYPE_CHECKING")
        or (node.type == "classdef" and "Protocol" in base_names(node))
        or (node.type == "decorator" and node.children[1].get_code() == "overload")
        or (node.parent and node.parent.type == "annassign" and node is node.parent.children[1])
        or (node.parent and node.parent.type == "tfpdef" and node is node.parent.children[2])
        or (node.parent and node.parent.type == "funcdef" and node is node.parent.annotation)
    )
    yield node, live
    if isinstance(node, BaseNode):
        for child in node.children:
            yield from walk(child, live)


def base_names(node: NodeOrLeaf) -> list[str]:
    """The names of a class's base classes."""
    bases = node.get_super_arglist()
    return [one.value for one in ast_nodes(bases) if one.type == "name"] if bases else []


def qualified_name(node: NodeOrLeaf) -> str:
    """The functions and classes around a node."""
    names = []
    while node := node.search_ancestor("funcdef", "classdef"):
        names.append(node.name.value)
    return ".".join(reversed(names))


def surroundings(
    node: NodeOrLeaf, lines: range, bodies: Collection[int]
) -> dict[str, Collection[int]]:
    """The lines whose tests may notice a change to a node, narrowest first.

    Whatever is run at import is recorded for the first test that imports the module; here, the
    function below a decorator or a header stands for it, and else all functions of the module.
    """
    function = node.search_ancestor("funcdef")
    if function and lines.start in function_lines(function):
        statement = node.search_ancestor("simple_stmt")
        within = statement and statement.start_pos > function.start_pos
        return {"line": lines} | ({"statement": span(statement)} if within else {})
    if decorator := node if node.type == "decorator" else node.search_ancestor("decorator"):
        function = decorator.search_ancestor("decorated").children[-1]
    body = function_lines(function) if function else set()
    return {"function": body} if body else {"module": bodies}


def function_lines(node: NodeOrLeaf) -> set[int]:
    """The lines in the bodies of all functions in a node."""
    suites = [one.children[-1] for one in ast_nodes(node) if one.type == "funcdef"]
    return {line for suite in suites for line in span(suite)[suite.type == "suite" :]}


def span(node: NodeOrLeaf) -> range:
    end_line, end_column = node.end_pos
    return range(node.start_pos[0], end_line + (end_column > 0))


def test_mutants(
    sample: list[Mutant], tests: dict[str, Tests], results: Path
) -> dict[str, dict[str, Any]]:
    """Test the mutants that have no outcome yet; returns all outcomes by key."""
    log, tree = results / "mutants.jsonl", results / "tree-0"
    lines = log.read_text("utf-8").splitlines() if log.exists() else []
    outcomes = {outcome["key"]: outcome for outcome in map(json.loads, lines)}
    waiting = [mutant for mutant in sample if mutant.key not in outcomes]
    print(f"{len(sample)} mutants, {len(waiting)} to test", flush=True)
    shutil.rmtree(tree, ignore_errors=True)
    shutil.copytree(results / "tree", tree)
    if not outcomes:
        for room, first in {mutant.place.room: mutant for mutant in waiting}.items():
            unchanged = first._replace(code=first.original)
            outcome = test_mutant(unchanged, tests[room], tree, results)
            if outcome["outcome"] in KILLED:
                raise SystemExit(f"{room}: {outcome['killer']} fails on the unchanged code, too")
    for mutant in waiting:
        outcome = test_mutant(mutant, tests[mutant.place.room], tree, results)
        outcomes[mutant.key] = outcome
        with log.open("a", encoding="utf-8") as file:
            file.write(json.dumps(outcome) + "\n")
        print(len(outcomes), *outcome.values(), flush=True)
    return outcomes


def test_mutant(mutant: Mutant, tests: Tests, tree: Path, results: Path) -> dict[str, Any]:
    """Run a mutant's tests in a tree, the quickest first, until one fails."""
    began = time.monotonic()
    how, names = tests.of(results / "tree" / mutant.place.file, mutant.place)
    total = [tests.seconds(names[:count]) for count in range(1, len(names) + 1)]
    most = max(TESTS, sum(seconds <= SECONDS for seconds in total))
    first = sum(seconds <= FIRST_SECONDS for seconds in total[:most])
    outcome, killer = "survived", ""
    file, log = tree / mutant.place.file, tree / "mutant.log"
    before = file.stat()
    file.write_text(mutant.code, "utf-8")
    for stage in filter(None, (names[:first], names[first:most])):
        outcome, killer = run_stage(stage, tests, tree, log)
        if outcome != "survived":
            break
    file.write_text(mutant.original, "utf-8")
    os.utime(file, ns=(before.st_atime_ns, before.st_mtime_ns))  # its compiled code is valid again
    if outcome == "survived" and how == "processes":
        outcome = "not covered"
    place = mutant.place
    found = {"key": mutant.key, "outcome": outcome, "killer": killer, "chosen by": how}
    found |= {"tests": len(names), "left out": len(names[most:])}
    found |= {"room": place.room, "file": place.file, "line": place.line}
    return found | {"operator": mutant.operator, "wall": time.monotonic() - began}


def run_stage(names: list[str], tests: Tests, tree: Path, log: Path) -> tuple[str, str]:
    """Run tests on a mutant; returns its outcome and the test that failed."""
    selection = tree / "mutant.json"
    selection.write_text(json.dumps({name: tests.seconds([name]) for name in names}), "utf-8")
    files = dict.fromkeys(name.partition("::")[0] for name in names)
    command = [*PYTEST, *PLUGIN, "-x", "--tb=no", "-rfE", *files]
    limit = START + FACTOR * tests.seconds(names)
    status = run(command, tree, {"MUTANTS_SELECT": str(selection)}, log, timeout=limit)
    output = log.read_text("utf-8", "replace")
    failed = re.search(r"^(?:FAILED|ERROR) (\S+)", output, re.MULTILINE)
    if status is None or "+ Timeout +" in output:
        return "timed out", ""
    if status == pytest.ExitCode.NO_TESTS_COLLECTED:
        raise RuntimeError(f"{log}: none of the tests was found")
    return "killed" if status else "survived", failed[1] if failed else ""


def run(
    command: list[str], tree: Path, variables: dict[str, str], log: Path, timeout: float | None
) -> int | None:
    """Run a module in a tree; returns its exit status, or None after a timeout.

    All processes that it leaves behind are killed.
    """
    folder = tempfile.mkdtemp(prefix="m")  # short, for the paths of sockets
    environment = os.environ | {"PYTHONPATH": str(tree), "TMPDIR": folder} | variables
    with log.open("wb") as output:
        process = subprocess.Popen(
            [sys.executable, "-m", *command],
            cwd=tree,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
        )
        for kind in (RLIMIT_DATA, RLIMIT_FSIZE):
            _, most = prlimit(process.pid, kind)  # stays as it is: some tests raise their limits
            prlimit(process.pid, kind, (BYTES, most))
        try:
            status = process.wait(timeout)
        except subprocess.TimeoutExpired:
            status = None
        finally:
            kill_all(folder)
            process.wait()
    shutil.rmtree(folder, ignore_errors=True)
    shutil.rmtree(tree / ".hypothesis" / "examples", ignore_errors=True)
    return status


def kill_all(folder: str) -> None:
    """Kill the processes whose folder of temporary files this is."""
    for environment in Path("/proc").glob("[0-9]*/environ"):
        with suppress(OSError):
            if f"TMPDIR={folder}\0".encode() in environment.read_bytes():
                os.kill(int(environment.parent.name), signal.SIGKILL)


def report(
    rooms: list[str], sample: list[Mutant], outcomes: dict[str, dict[str, Any]], results: Path
) -> None:
    """Print the tables, and write them and the diffs of all mutants that were not killed."""
    covered = table(coverage_row(room, results) for room in rooms)
    everywhere = [outcomes[mutant.key] for mutant in sample]
    by_room = {room: [one for one in everywhere if one["room"] == room] for room in rooms}
    killed = table(mutant_row(name, some) for name, some in [*by_room.items(), ("all", everywhere)])
    limited = sum(one["outcome"] == "survived" and bool(one["left out"]) for one in everywhere)
    text = (
        f"{covered}\n{killed}\nKilled includes timed out. {limited} survivors met only "
        f"the first {TESTS} of their tests, and more up to {SECONDS:.0f} s.\n"
    )
    (results / "report.md").write_text(text, "utf-8")
    survivors = [mutant for mutant in sample if outcomes[mutant.key]["outcome"] not in KILLED]
    survivors.sort(key=lambda mutant: (mutant.place.file, mutant.place.line))
    with (results / "survivors.diff").open("w", encoding="utf-8") as file:
        for mutant in survivors:
            outcome, place = outcomes[mutant.key], mutant.place
            codes = (code.splitlines(True) for code in (mutant.original, mutant.code))
            diff = "".join(unified_diff(*codes, place.file, place.file, n=2))
            file.write(
                f"# {place.file}:{place.line} {mutant.operator}: {outcome['outcome']}, "
                f"{outcome['tests']} tests by {outcome['chosen by']}, "
                f"{outcome['left out']} left out\n{diff}\n"
            )
    print(f"\n{text}\n{len(survivors)} survivors: {results / 'survivors.diff'}")


def coverage_row(room: str, results: Path) -> dict[str, object]:
    record = json.loads((results / f"{room}.json").read_text("utf-8"))
    counts = Counter(test["outcome"] for test in record["tests"].values())
    total = record["coverage"]
    return {
        "room": room,
        "tests": counts.total(),
        "failed": counts["failed"],
        "skipped": counts["skipped"],
        "wall s": round(record["wall"]),
        "CPU s": round(record["cpu"]),
        "lines %": f"{100 * total['covered_lines'] / total['num_statements']:.1f}",
        "branches %": f"{100 * total['covered_branches'] / total['num_branches']:.1f}",
    }


def mutant_row(room: str, outcomes: list[dict[str, Any]]) -> dict[str, object]:
    counts = Counter(one["outcome"] for one in outcomes)
    columns = ("killed", "timed out", "survived", "not covered")
    share = 100 * sum(counts[one] for one in KILLED) / max(1, len(outcomes))
    named = {column: counts[column] for column in columns}
    return {"room": room, "mutants": len(outcomes), **named, "killed %": f"{share:.1f}"}


def table(rows: Iterable[dict[str, object]]) -> str:
    """Rows as a table in Markdown."""
    headings, *_ = found = list(rows)
    lines = [headings, ["---"] * len(headings), *(row.values() for row in found)]
    return "".join(f"| {' | '.join(map(str, line))} |\n" for line in lines)


if __name__ == "__main__":
    main()
