"""MkDocs hooks that generate the documentation pages not under docs/."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT))  # mkdocs imports this file by its path

from scripts.dev.reference import commands_page, http_page, http_schema  # noqa: E402

#: Files of the repository, by the pages made of them.
REPOSITORY = {
    "results.md": "RESULTS.md",
    "changelog.md": "CHANGELOG.md",
    "contributing.md": "CONTRIBUTING.md",
}


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the generated pages."""
    schema = http_schema()
    pages = {name: of_repository(source) for name, source in REPOSITORY.items()}
    for notebook in (ROOT / "docs" / "notebooks").glob("*.ipynb"):
        pages[f"notebooks/{notebook.stem}.md"] = of_notebook(notebook)
    pages["reference/commands.md"] = commands_page()
    pages["reference/http.md"] = http_page(schema)
    pages["reference/openapi.json"] = json.dumps(schema, indent=2)
    for name, content in pages.items():
        files.append(File.generated(config, name, content=content))
    return files


def of_repository(name: str) -> str:
    """A file of the repository, with its links rewritten for the site."""
    text = (ROOT / name).read_text("utf-8").replace("](docs/", "](")
    for page, source in REPOSITORY.items():
        text = text.replace(f"]({source})", f"]({page})")
    return without_comments(text)


def without_comments(text: str) -> str:
    """The text without HTML comments."""
    return re.sub(r"<!--.*?-->\n?", "", text, flags=re.DOTALL)


def on_page_markdown(markdown: str, **_: object) -> str:
    """List the error codes in reference/errors.md, each with the first line of its page."""
    lines = []
    for page in sorted((ROOT / "docs" / "errors").glob("*.md")):
        summary = page.read_text("utf-8").split("\n\n")[1].replace("\n", " ")
        lines.append(f"- [`{page.stem}`](../errors/{page.name}) {summary}")
    return re.sub(r"<!-- codes:.*?-->", "\n".join(lines), markdown)


def on_page_content(html: str, **_: object) -> str:
    """Keep options such as `--where` from breaking at the ends of lines."""
    return re.sub(r"<code>(?=--?\w)", '<code class="option">', html)


def of_notebook(file: Path) -> str:
    """A notebook with the output of its cells, in Markdown."""
    parts = [f"[The notebook]({file.name}) with its output:"]
    for cell in json.loads(file.read_text("utf-8"))["cells"]:
        source = "".join(cell["source"])
        if cell["cell_type"] == "markdown":
            parts.append(source)
            continue
        parts.append(f"```python\n{source}\n```")
        for output in cell["outputs"]:
            data = output.get("data", {"text/plain": output.get("text", "")})
            if "image/png" in data:
                picture = "".join(data["image/png"]).strip()
                parts.append(f"![](data:image/png;base64,{picture})")
            elif "text/html" in data:
                parts.append(f"<div>{' '.join(''.join(data['text/html']).split())}</div>")
            else:
                parts.append(f"```text\n{''.join(data['text/plain']).strip()}\n```")
    return "\n\n".join([parts[1], parts[0], *parts[2:]]) + "\n"
