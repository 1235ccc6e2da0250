"""The layers of the package: imports only go down, and siblings do not import each other."""

from __future__ import annotations

import ast
import graphlib
import re
import subprocess
import sys
from pathlib import Path

import semsearch

PACKAGE = Path(semsearch.__file__).parent

#: From the bottom up; the components of a layer are separated by spaces.
LAYERS = [
    "errors",
    "records",
    "filters protocols",
    "corpus vector_indexes",
    "evaluation.datasets",
    "encoders",
    "storage",
    "search indexing",
    "index",
    "evaluation",
    "explore training",
    "service integrations",
    "cli",
    "__main__",
]
LAYER = {name: height for height, names in enumerate(LAYERS) for name in names.split()}

HEAVY = ["torch", "transformers", "pandas", "sentence_transformers", "pyarrow", "pymilvus"]


def modules() -> dict[str, Path]:
    """Every module of the package by its dotted name."""
    found = {}
    for file in PACKAGE.rglob("*.py"):
        parts = ("semsearch", *file.relative_to(PACKAGE).with_suffix("").parts)
        found[".".join(parts).removesuffix(".__init__")] = file
    return found


MODULES = modules()


def imports(file: Path) -> set[str]:
    """The package's own modules that a file imports, under TYPE_CHECKING and in functions too."""
    found = set()
    for node in ast.walk(ast.parse(file.read_text("utf-8"))):
        if isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{file}: relative import"
            names = {f"{node.module}.{alias.name}" for alias in node.names}
            found |= {name if name in MODULES else str(node.module) for name in names}
        elif isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
    return {name for name in found if name in MODULES}


def component(module: str) -> str:
    """The room of a module; data sets are below encoders, whose int8 is measured on them."""
    if module.startswith("semsearch.evaluation.datasets"):
        return "evaluation.datasets"
    return [*module.split("."), "semsearch"][1]


def test_every_component_has_a_layer():
    assert {component(name) for name in MODULES} - {"semsearch"} == set(LAYER)


def test_imports_only_go_down():
    for module in MODULES.keys() - {"semsearch"}:
        for imported in imports(MODULES[module]) - {"semsearch"}:
            if component(imported) != component(module):
                lower, upper = LAYER[component(imported)], LAYER[component(module)]
                assert lower < upper, f"{module} imports {imported}"


def test_the_list_for_contributors_is_in_the_order_of_imports():
    """No line imports from one above it, or from itself."""
    listed = Path(__file__).parents[1].joinpath("CONTRIBUTING.md").read_text("utf-8")
    block = listed.partition("enforces this.\n")[2].partition("\n- ")[0]
    names = [
        [
            re.sub(r"/$|\.py", "", name).replace("/", ".")
            for name in re.findall(r"[\w/]+(?:/|\.py)(?=\s)", line[:34])
        ]
        for line in block.splitlines()
    ]
    height = {name: -place for place, line in enumerate(names) for name in line}
    assert height.keys() == LAYER.keys() - {"__main__"}
    for module, file in MODULES.items():
        for imported in imports(file) - {"semsearch"}:
            upper, lower = component(module), component(imported)
            if upper != lower and {upper, lower} <= height.keys():
                assert height[lower] < height[upper], f"{module} imports {imported}"


def test_imports_have_no_cycle():
    # semsearch/__init__.py lists names for type checkers; at run time it imports none of them.
    graph = {name: imports(file) - {name} for name, file in MODULES.items() if name != "semsearch"}
    list(graphlib.TopologicalSorter(graph).static_order())


def test_no_pickle_and_no_eval():
    for name, file in MODULES.items():
        tree = ast.parse(file.read_text("utf-8"))
        for node in ast.walk(tree):
            if isinstance(node, ast.Import | ast.ImportFrom):
                names = {alias.name for alias in node.names} | {getattr(node, "module", None)}
                assert not names & {"pickle", "joblib", "dill", "shelve", "marshal"}, name
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
                assert node.func.id not in {"eval", "exec"}, name


def test_public_names_are_exactly_these():
    listed = semsearch.__all__
    assert set(semsearch._MODULES) | {"__version__"} == set(listed)
    for name in semsearch.__all__:
        assert getattr(semsearch, name) is not None


def loaded_by(*arguments: str, cwd: Path) -> set[str]:
    """The modules that a semsearch command has loaded at its end."""
    code = (
        "import os, sys\n"
        "os._exit = lambda status: print(*sys.modules, file=sys.stderr)\n"
        f"sys.argv = {['semsearch', *arguments]}\n"
        "from semsearch.cli import run\n"
        "run()"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, cwd=cwd, check=True
    )
    return set(done.stderr.split())


def test_importing_the_package_imports_nothing_heavy(tmp_path):
    code = "import semsearch, sys; print(*sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, cwd=tmp_path, check=True
    )
    assert not {*HEAVY, "numpy", "sqlalchemy", "faiss", "click"} & set(done.stdout.split())


def test_help_imports_nothing_heavy(tmp_path):
    loaded = loaded_by("--help", cwd=tmp_path)
    assert not loaded & {*HEAVY, "sqlalchemy", "faiss", "numpy", "openvino"}
    assert "click" in loaded


def test_a_query_without_a_model_imports_no_heavy_package(tmp_path):
    with semsearch.Index.create(tmp_path / "indexes" / "one", ["hashing"]) as index:
        index.add([semsearch.Document("a", "a text")])
    loaded = loaded_by("query", "text", "--mode", "bm25", cwd=tmp_path)
    assert not loaded & {*HEAVY, "filelock"}  # only writers lock


#: Modules of steps that only some searches take, and of writers.
NOT_IN_A_PLAIN_QUERY = [
    "semsearch.storage.words",
    "semsearch.filters",
    "semsearch.search.diversity",
    "semsearch.search.explaining",
    "semsearch.search.fusion",
    "semsearch.search.reranking",
    "semsearch.storage.sqlite.conditions",
    "semsearch.storage.sqlite.bm25",
    "semsearch.storage.sqlite.writer",
    "semsearch.vector_indexes.ivf",
]


def test_a_plain_query_imports_few_modules(tmp_path, minilm):
    with semsearch.Index.create(tmp_path / "indexes" / "one", [minilm]) as index:
        index.add([semsearch.Document("a", "A text.")])
    everything = loaded_by("query", "text", cwd=tmp_path)
    assert everything & {*HEAVY, "huggingface_hub"} == set()
    assert {"openvino", "tokenizers", "faiss", "sqlalchemy"} <= everything
    loaded = {name for name in everything if name.partition(".")[0] == "semsearch"}
    lines = sum(len(MODULES[name].read_text("utf-8").splitlines()) for name in loaded)
    assert "semsearch.storage.sqlite.reader" in loaded
    assert not loaded & set(NOT_IN_A_PLAIN_QUERY)
    assert set(NOT_IN_A_PLAIN_QUERY) <= set(MODULES)
    assert lines <= 10_100
