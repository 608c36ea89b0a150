# SPDX-License-Identifier: Apache-2.0
"""A validator of the part of JSON Schema (draft 2020-12) that docs/manifest.schema.json uses; any other keyword is
an error, so that none is passed over in silence."""

from __future__ import annotations

import re
from typing import Any

_TYPES = {"object": dict, "array": list, "string": str, "boolean": bool}
_ABOUT = {"$schema", "$defs", "title"}


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _same(value: Any, other: Any) -> bool:
    return value == other and isinstance(value, bool) == isinstance(other, bool)


class Schema:
    def __init__(self, root: dict[str, Any]):
        self.root = root

    def errors(self, value: Any) -> list[str]:
        return list(self._check(self.root, value, "$"))

    def _fits(self, schema: Any, value: Any) -> bool:
        return not list(self._check(schema, value, ""))

    def _check(self, schema: Any, value: Any, at: str):
        if schema is False:
            yield f"{at} must not be there"
        if isinstance(schema, bool):
            return
        known = _ABOUT | {"then", "else", "minContains", "maxContains"}
        for keyword, wanted in schema.items():
            if keyword in known:
                continue
            check = getattr(self, "_" + keyword.strip("$").lower(), None)
            if check is None:
                raise NotImplementedError(f"JSON Schema keyword '{keyword}'")
            yield from check(wanted, value, at, schema)

    def _ref(self, wanted, value, at, _):
        schema = self.root
        for name in wanted.removeprefix("#/").split("/"):
            schema = schema[name]
        yield from self._check(schema, value, at)

    def _type(self, wanted, value, at, _):
        if wanted == "integer":
            good = _is_number(value) and float(value).is_integer()
        elif wanted == "number":
            good = _is_number(value)
        else:
            good = isinstance(value, _TYPES[wanted])
        if not good:
            yield f"{at} is no {wanted}"

    def _const(self, wanted, value, at, _):
        if not _same(value, wanted):
            yield f"{at} is not {wanted}"

    def _enum(self, wanted, value, at, _):
        if not any(_same(value, one) for one in wanted):
            yield f"{at} is none of {wanted}"

    def _pattern(self, wanted, value, at, _):
        if isinstance(value, str) and not re.search(wanted, value):
            yield f"{at} does not match {wanted}"

    def _bounded(self, good: bool, at, text):
        if not good:
            yield f"{at} {text}"

    def _minimum(self, wanted, value, at, _):
        yield from self._bounded(not _is_number(value) or value >= wanted, at, f"is below {wanted}")

    def _maximum(self, wanted, value, at, _):
        yield from self._bounded(not _is_number(value) or value <= wanted, at, f"is above {wanted}")

    def _exclusiveminimum(self, wanted, value, at, _):
        yield from self._bounded(not _is_number(value) or value > wanted, at, f"is not above {wanted}")

    def _minlength(self, wanted, value, at, _):
        yield from self._bounded(not isinstance(value, str) or len(value) >= wanted, at, "is too short")

    def _maxlength(self, wanted, value, at, _):
        yield from self._bounded(not isinstance(value, str) or len(value) <= wanted, at, "is too long")

    def _minitems(self, wanted, value, at, _):
        yield from self._bounded(not isinstance(value, list) or len(value) >= wanted, at, "has too few items")

    def _maxitems(self, wanted, value, at, _):
        yield from self._bounded(not isinstance(value, list) or len(value) <= wanted, at, "has too many items")

    def _maxproperties(self, wanted, value, at, _):
        yield from self._bounded(not isinstance(value, dict) or len(value) <= wanted, at, "has too many keys")

    def _uniqueitems(self, wanted, value, at, _):
        if wanted and isinstance(value, list) and any(one in value[:i] for i, one in enumerate(value)):
            yield f"{at} has an item twice"

    def _items(self, wanted, value, at, _):
        for i, item in enumerate(value if isinstance(value, list) else []):
            yield from self._check(wanted, item, f"{at}[{i}]")

    def _contains(self, wanted, value, at, schema):
        if isinstance(value, list):
            count = sum(self._fits(wanted, item) for item in value)
            if not schema.get("minContains", 1) <= count <= schema.get("maxContains", len(value)):
                yield f"{at} has {count} of what it must contain"

    def _required(self, wanted, value, at, _):
        for key in wanted if isinstance(value, dict) else []:
            if key not in value:
                yield f"{at}.{key} is missing"

    def _properties(self, wanted, value, at, _):
        for key, schema in wanted.items() if isinstance(value, dict) else []:
            if key in value:
                yield from self._check(schema, value[key], f"{at}.{key}")

    def _additionalproperties(self, wanted, value, at, schema):
        for key, item in value.items() if isinstance(value, dict) else []:
            if key not in schema.get("properties", {}):
                yield from self._check(wanted, item, f"{at}.{key}")

    def _allof(self, wanted, value, at, _):
        for schema in wanted:
            yield from self._check(schema, value, at)

    def _anyof(self, wanted, value, at, _):
        if not any(self._fits(schema, value) for schema in wanted):
            yield f"{at} fits none of the alternatives"

    def _if(self, wanted, value, at, schema):
        yield from self._check(schema.get("then" if self._fits(wanted, value) else "else", True), value, at)
