#!/usr/bin/env python3
"""Which types and traits of other crates a crate's public API shows: public_types.py RUSTDOC.json

One line each, as crate::path, sorted. What a crate shows, it cannot replace, nor move to the next major version of,
without breaking its users. Private fields, derived implementations for everything, and std don't count.
"""

import json
import sys

# std is everybody's. The macro's helper stands in an implementation of Unpin that nobody can write by hand.
OWN = {"alloc", "core", "std", "pin_project_lite"}
PROSE = {"attrs", "deprecation", "docs", "links", "span"}


def main() -> None:
    with open(sys.argv[1], encoding="utf-8") as file:
        document = json.load(file)
    paths = document["paths"]
    crates = {int(number): crate["name"] for number, crate in document["external_crates"].items()}
    shown: set[str] = set()

    def look(node: object) -> None:
        if isinstance(node, dict):
            target = paths.get(str(node.get("id"))) if "path" in node else None
            if target and crates.get(target["crate_id"], "std") not in OWN:
                shown.add("::".join(target["path"]))
            for key, value in node.items():
                if key not in PROSE:
                    look(value)
        elif isinstance(node, list):
            for value in node:
                look(value)

    for item in document["index"].values():
        implementation = item["inner"].get("impl", {})
        by_compiler = implementation.get("is_synthetic") or implementation.get("blanket_impl")
        if item["crate_id"] == 0 and not by_compiler:
            look(item["inner"])
    print("\n".join(sorted(shown)))


main()
