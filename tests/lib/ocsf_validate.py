#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Checks every line of JSON-lines files against the published OCSF schema.

The schema is a folder of class, object, profile and dictionary files in the layout of ocsf-schema. A class gets its
attributes from the classes it extends, from the profiles it includes (which count only where metadata.profiles
names them) and from itself; the dictionary adds type, array flag, enum and sibling. A line fails on: an attribute the
schema does not know or has deprecated, a missing required one, a wrong type, a value outside its enum, a caption
that differs from its enum, a violated constraint, ids that do not fit together, a time that is not in epoch ms.

usage: ocsf_validate.py [--schema DIR] [--each-must-fail] [--describe CLASS_OR_OBJECT] FILE...
exit:  0 all lines passed, 1 some failed, 2 usage, 3 the schema is not there
"""
import argparse
import glob
import json
import os
import re
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
DEFAULT_SCHEMA = os.path.normpath(os.path.join(HERE, "..", "..", "..", "shared", "ocsf"))
LONG_MIN, LONG_MAX = -(1 << 63), (1 << 63) - 1
# Epoch milliseconds from 1973 to 5138: seconds and microseconds of this century both lie outside.
TIME_MIN, TIME_MAX = 10**11, 10**14
LINE_MAX = 65536


def load(path):
    with open(path, encoding="utf-8") as f:
        return json.load(f)


class Schema:
    """The resolved schema: attributes of each class and object as one flat table."""

    def __init__(self, folder):
        self.folder = folder
        dictionary = load(os.path.join(folder, "dictionary.json"))
        self.dictionary = dictionary["attributes"]
        self.types = dictionary["types"]["attributes"]
        self.version = load(os.path.join(folder, "version.json"))["version"]
        self.categories = load(os.path.join(folder, "categories.json"))["attributes"]
        self.profiles = self._by_name("profiles/*.json")
        self.raw_objects = self._by_name("objects/*.json")
        self.raw_events = self._by_name("events/**/*.json")
        self.resolved = {}
        self.classes = {}
        for name, raw in self.raw_events.items():
            if "uid" in raw:
                category = self.categories[self._inherited(self.raw_events, name, "category")]
                self.classes[category["uid"] * 1000 + raw["uid"]] = (name, category)

    def _by_name(self, pattern):
        found = glob.glob(os.path.join(self.folder, pattern), recursive=True)
        return {item["name"]: item for item in map(load, found)}

    def _inherited(self, table, name, key):
        while name:
            if key in table[name]:
                return table[name][key]
            name = table[name].get("extends")
        return None

    def event(self, name):
        return self._resolve("event", self.raw_events, name)

    def object(self, name):
        return self._resolve("object", self.raw_objects, name)

    def _resolve(self, kind, table, name):
        if (kind, name) not in self.resolved:
            self.resolved[kind, name] = self._merge(kind, table, name)
        return self.resolved[kind, name]

    def _merge(self, kind, table, name):
        raw = table[name]
        parent = raw.get("extends")
        base = self._resolve(kind, table, parent) if parent else {"attributes": {}, "constraints": {}}
        attributes = {k: dict(v) for k, v in base["attributes"].items()}
        for path in raw.get("attributes", {}).get("$include", []):
            profile = load(os.path.join(self.folder, path))
            for key, own in profile["attributes"].items():
                self._add(attributes, key, {"profile": profile["name"], **own})
        for key, own in raw.get("attributes", {}).items():
            if not key.startswith("$"):
                self._add(attributes, key, own)
        # These two the schema's own compiler fills in for each class; Line.identifiers checks them.
        for key in ("class_uid", "category_uid"):
            if kind == "event":
                attributes[key].pop("enum", None)
        return {
            "name": name,
            "caption": raw.get("caption", name),
            "attributes": attributes,
            "required": {key: a for key, a in attributes.items() if a.get("requirement") == "required"},
            "constraints": raw.get("constraints", base["constraints"]),
        }

    def _add(self, attributes, key, own):
        known = key in attributes
        merged = attributes.get(key) or json.loads(json.dumps(self.dictionary[key]))
        enum = {**merged.get("enum", {}), **own.get("enum", {})}
        merged = {**merged, **own}
        if enum:
            merged["enum"] = enum
        # A class that names an attribute itself owns it, unless it says which profile it belongs to.
        if "profile" in own:
            merged["profile"] = own["profile"]
        elif known and attributes[key].get("profile"):
            merged["profile"] = attributes[key]["profile"]
        attributes[key] = merged


class Line:
    """One event under check; errors collect with the path of what they are about."""

    def __init__(self, schema, event):
        self.schema = schema
        self.event = event
        self.errors = []
        metadata = event.get("metadata")
        profiles = metadata.get("profiles", []) if isinstance(metadata, dict) else []
        self.profiles = set(profiles) if isinstance(profiles, list) and all(
            isinstance(p, str) for p in profiles) else set()

    def error(self, path, text):
        self.errors.append(f"{path or 'event'}: {text}")

    def check(self):
        uid = self.event.get("class_uid")
        if not is_integer(uid) or uid not in self.schema.classes:
            self.error("class_uid", f"no such class: {uid!r}")
            return self.errors
        name, category = self.schema.classes[uid]
        definition = self.schema.event(name)
        for profile in sorted(self.profiles - set(self.schema.profiles)):
            self.error("metadata.profiles", f"no such profile: {profile}")
        self.identifiers(definition, uid, category)
        self.table("", definition, self.event)
        return self.errors

    def identifiers(self, definition, uid, category):
        event = self.event
        activity = event.get("activity_id")
        captions = definition["attributes"]["activity_id"]["enum"]
        if event.get("category_uid") != category["uid"]:
            self.error("category_uid", f"is not {category['uid']}")
        if is_integer(activity) and event.get("type_uid") != uid * 100 + activity:
            self.error("type_uid", f"is not class_uid * 100 + activity_id = {uid * 100 + activity}")
        same = {
            "class_name": definition["caption"],
            "category_name": category["caption"],
            "type_name": f"{definition['caption']}: {captions.get(str(activity), {}).get('caption')}",
        }
        for key, caption in same.items():
            if key in event and event[key] != caption:
                self.error(key, f"is not {caption!r}")
        if isinstance(event.get("metadata"), dict):
            if event["metadata"].get("version") != self.schema.version:
                self.error("metadata.version", f"is not {self.schema.version}")
        self.aggregate()

    def aggregate(self):
        event = self.event
        if is_integer(event.get("count")) and event["count"] < 1:
            self.error("count", "is less than 1")
        start, end = event.get("start_time"), event.get("end_time")
        if is_integer(start) and is_integer(end) and end < start:
            self.error("end_time", "is before start_time")
        if is_integer(event.get("count")) and event["count"] > 1 and (start is None or end is None):
            self.error("count", "an aggregate without start_time and end_time")

    def in_force(self, attribute):
        return not attribute.get("profile") or attribute["profile"] in self.profiles

    def table(self, path, definition, value):
        attributes = definition["attributes"]
        # The generic object has no attributes of its own and may hold anything.
        if definition["name"] == "object":
            return
        for key in value:
            self.attribute(f"{path}.{key}".lstrip("."), attributes.get(key), key, value)
        for key, attribute in definition["required"].items():
            if key not in value and self.in_force(attribute):
                self.error(f"{path}.{key}".lstrip("."), "is required")
        for kind, keys in definition["constraints"].items():
            present = [key for key in keys if key in value]
            if kind == "at_least_one" and not present:
                self.error(path, f"has none of {', '.join(keys)}")
            if kind == "just_one" and len(present) != 1:
                self.error(path, f"has not exactly one of {', '.join(keys)}")

    def attribute(self, path, attribute, key, owner):
        value = owner[key]
        if attribute is None:
            return self.error(path, "is not an attribute here")
        if not self.in_force(attribute):
            return self.error(path, f"belongs to profile {attribute['profile']}, which metadata.profiles lacks")
        if "@deprecated" in attribute:
            return self.error(path, "is deprecated")
        if attribute.get("is_array"):
            if not isinstance(value, list):
                return self.error(path, "is not an array")
            for i, item in enumerate(value):
                self.value(f"{path}[{i}]", attribute, item)
        else:
            self.value(path, attribute, value)
        if "enum" in attribute:
            self.enum(path, attribute, value, owner)
        return None

    def enum(self, path, attribute, value, owner):
        values = value if isinstance(value, list) else [value]
        captions = []
        for item in values:
            if isinstance(item, bool) or str(item) not in attribute["enum"]:
                return self.error(path, f"{item!r} is not in the enum")
            captions.append(attribute["enum"][str(item)]["caption"])
        sibling = attribute.get("sibling")
        if not sibling:
            return None
        sibling_path = path.rpartition(".")[0] + "." + sibling
        if sibling in owner:
            said = owner[sibling] if isinstance(owner[sibling], list) else [owner[sibling]]
            wrong = [s for v, c, s in zip(values, captions, said) if v != 99 and s != c]
            if wrong or len(said) != len(values):
                self.error(sibling_path.lstrip("."), f"{owner[sibling]!r} is not the caption {captions}")
        elif 99 in values:
            self.error(path, f"99 (Other) without {sibling}")
        return None

    def value(self, path, attribute, value):
        kind = attribute["type"]
        if kind in self.schema.types:
            return self.scalar(path, kind, value)
        if not isinstance(value, dict):
            return self.error(path, "is not an object")
        return self.table(path, self.schema.object(kind), value)

    def scalar(self, path, kind, value):
        rule = self.schema.types[kind]
        base = rule.get("type", kind)
        if kind == "json_t":
            return None
        if kind == "boolean_t":
            return None if isinstance(value, bool) else self.error(path, "is not a boolean")
        if kind == "float_t":
            number = isinstance(value, float) or is_integer(value)
            return None if number else self.error(path, "is not a number")
        if base in ("integer_t", "long_t"):
            return self.number(path, kind, rule, value)
        if not isinstance(value, str):
            return self.error(path, "is not a string")
        if "max_len" in rule and len(value) > rule["max_len"]:
            return self.error(path, f"is longer than {rule['max_len']}")
        if "regex" in rule and not re.search(rule["regex"], value):
            return self.error(path, f"{value!r} is not a {rule['caption']}")
        return None

    def number(self, path, kind, rule, value):
        if not is_integer(value) or not LONG_MIN <= value <= LONG_MAX:
            return self.error(path, "is not an integer of 64 bits")
        low, high = rule.get("range", (LONG_MIN, LONG_MAX))
        if not low <= value <= high:
            return self.error(path, f"{value} is not between {low} and {high}")
        if kind == "timestamp_t" and not TIME_MIN <= value <= TIME_MAX:
            return self.error(path, f"{value} is not a time in epoch milliseconds")
        return None


def is_integer(value):
    return isinstance(value, int) and not isinstance(value, bool)


def unique(pairs):
    table = dict(pairs)
    if len(table) != len(pairs):
        raise ValueError("a key appears twice")
    return table


def no_constant(name):
    raise ValueError(f"{name} is not JSON")


def check_line(schema, raw):
    if len(raw) > LINE_MAX:
        return [f"the line is longer than {LINE_MAX} bytes"]
    try:
        event = json.loads(raw.decode("utf-8"), object_pairs_hook=unique, parse_constant=no_constant)
    except ValueError as error:
        return [f"not JSON: {error}"]
    if not isinstance(event, dict):
        return ["not an object"]
    return Line(schema, event).check()


def check_file(schema, path, each_must_fail):
    passed = failed = 0
    with open(path, "rb") as f:
        raw = f.read()
    if raw and not raw.endswith(b"\n"):
        print(f"{path}: the last line has no end")
        failed += 1
    for number, line in enumerate(raw.splitlines(), 1):
        errors = check_line(schema, line)
        if bool(errors) == each_must_fail:
            passed += 1
            if each_must_fail:
                print(f"{path}:{number}: refused as it must be: {errors[0]}")
            continue
        failed += 1
        for error in errors or ["is broken on purpose, but passed"]:
            print(f"{path}:{number}: {error}")
    return passed, failed


def describe(schema, name):
    definition = schema.event(name) if name in schema.raw_events else schema.object(name)
    print(f"{definition['caption']} {json.dumps(definition['constraints'])}")
    for key, attribute in sorted(definition["attributes"].items()):
        enum = ", ".join(f"{k} {v['caption']}" for k, v in attribute.get("enum", {}).items())
        print(f"  {key}: {attribute['type']}{'[]' if attribute.get('is_array') else ''}"
              f" {attribute.get('requirement', '')} {attribute.get('profile') or ''}"
              f"{' deprecated' if '@deprecated' in attribute else ''}{' {' + enum + '}' if enum else ''}")


def main():
    parser = argparse.ArgumentParser(description="check JSON lines against the OCSF schema")
    parser.add_argument("--schema", default=DEFAULT_SCHEMA)
    parser.add_argument("--each-must-fail", action="store_true", help="every line must be refused")
    parser.add_argument("--describe", metavar="NAME", help="print a class or object as resolved")
    parser.add_argument("files", nargs="*")
    arguments = parser.parse_args()
    if not os.path.exists(os.path.join(arguments.schema, "dictionary.json")):
        print(f"no OCSF schema in {arguments.schema}: nothing was checked", file=sys.stderr)
        return 3
    schema = Schema(arguments.schema)
    if arguments.describe:
        describe(schema, arguments.describe)
        return 0
    if not arguments.files:
        parser.error("no file")
    counts = [check_file(schema, path, arguments.each_must_fail) for path in arguments.files]
    passed, failed = sum(c[0] for c in counts), sum(c[1] for c in counts)
    print(f"{passed} passed, {failed} failed")
    return 1 if failed or not passed else 0


if __name__ == "__main__":
    sys.exit(main())
