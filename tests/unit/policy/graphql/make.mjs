// SPDX-License-Identifier: Apache-2.0
// Writes GraphQL documents with the verdict of the reference implementation: node make.mjs FOLDER-OF-MODULES COUNT SEED >cases
// (npm install --prefix FOLDER graphql@16). A case is a line "LENGTH VERDICT SUMMARY", the document, and a line end; the
// summary names the operations and the fields at their roots. A document that the grammar allows but vethguard refuses,
// because readers differ there, has the verdict "refuse".
import { createRequire } from "node:module";
import { pathToFileURL } from "node:url";

const [modules, count, seed] = process.argv.slice(2);
const { parse } = createRequire(pathToFileURL(modules + "/"))("graphql");

let state = Number(seed) >>> 0;
function roll(n) {
	state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
	return Math.floor((state / 4294967296) * n);
}
const pick = (list) => list[roll(list.length)];
const many = (max, make, between = " ") => Array.from({ length: 1 + roll(max) }, make).join(between);

const space = () => pick([" ", " ", "\n", "\t", "  ", ", ", " ,\r\n", " # note { } \" \n", "\r"]);
const maybe = () => (roll(3) ? "" : space());
const name = () => pick(["a", "b", "user", "on", "query", "mutation", "fragment", "type", "true", "null", "_x9", "__typename", "viewer"]);
const string = () => pick(['""', '"x"', '"{ a }"', '"\\u0041\\n\\""', '"\\u{1F600}"', '"\\uD83D\\uDE00"', '""""""', '"""a "b" \\""" {c}"""', '"""\n  x\n"""', '"é # x"']);
const number = () => pick(["0", "-1", "10", "1.5", "-0.0e+5", "2E3", "123456789"]);

function value(depth, constant) {
	const kind = roll(depth > 3 ? 5 : 8);
	if (kind === 0 && !constant) return "$" + maybe() + name();
	if (kind <= 1) return number();
	if (kind === 2) return string();
	if (kind === 3) return pick(["true", "false", "null", "ENUM"]);
	if (kind === 4) return name();
	if (kind === 5) return "[" + maybe() + (roll(4) ? many(3, () => value(depth + 1, constant), space()) : "") + "]";
	return "{" + maybe() + (roll(4) ? many(3, () => name() + maybe() + ":" + maybe() + value(depth + 1, constant), space()) : "") + "}";
}
const args = (constant) => (roll(3) ? "" : "(" + maybe() + many(3, () => name() + maybe() + ":" + maybe() + value(0, constant), space()) + maybe() + ")");
const directives = (constant) => (roll(4) ? "" : many(2, () => "@" + name() + args(constant), space()) + space());
const type = (depth = 0) => (depth < 3 && !roll(3) ? "[" + maybe() + type(depth + 1) + maybe() + "]" : pick(["Int", "User", "on"])) + pick(["", "!"]);
const fragmentNames = ["F", "F", "query"];

function selection(depth) {
	const kind = roll(16);
	if (kind === 0) return "..." + maybe() + pick(fragmentNames) + " " + directives(false);
	if (kind === 1) return "..." + maybe() + pick(["", "on User ", "on  X\n"]) + directives(false) + set(depth + 1);
	return (roll(4) ? "" : name() + maybe() + ":" + maybe()) + name() + args(false) + space() + directives(false) +
		(depth < 4 && !roll(3) ? set(depth + 1) : "");
}
const set = (depth) => "{" + maybe() + many(4, () => selection(depth), space()) + maybe() + "}";
const variables = () => (roll(2) ? "" : "(" + many(3, () => "$" + name() + maybe() + ":" + maybe() + type() + (roll(3) ? "" : maybe() + "=" + maybe() + value(0, true)) + " " + directives(true), space()) + ")");
function definition() {
	const kind = roll(6);
	if (kind === 0) return set(0);
	if (kind < 3) return "fragment " + pick([...fragmentNames, "on"]) + " on " + name() + space() + directives(false) + set(0);
	return pick(["query", "mutation", "subscription"]) + space() + (roll(3) ? name() + maybe() : "") + variables() + space() + directives(false) + set(0);
}
const bytes = [..."{}()[]:!$@=|&\"\\#.,-+0123456789eE_azAZ \n\r\tu", "...", "\"\"\"", "on", "query", "fragment", "\ufeff", "\u2028", "\u00e9", "\u0001", "😀"];
function mutate(text) {
	const list = [...text];
	for (let i = roll(4); i >= 0; i--) {
		const at = roll(list.length + 1);
		const kind = roll(3);
		if (kind === 0) list.splice(at, 1 + roll(3));
		else if (kind === 1) list.splice(at, 0, pick(bytes));
		else list.splice(at, 1, pick(bytes));
	}
	return list.join("");
}

// True if readers could read the text differently: control characters anywhere, or what stands below.
function isDoubtful(text) {
	// eslint-disable-next-line no-control-regex
	if (/[\u0000-\u0008\u000b\u000c\u000e-\u001f]/.test(text)) return true;
	// Outside of strings: a byte order mark; in comments: U+2028, U+2029 and a bare CR, which not all readers take for a line end.
	const rest = text.replace(/"""(?:\\"""|[^"]|"(?!""))*"""|"(?:\\.|[^"\\\n\r])*"|#[^\n\r]*(\r(?!\n))?/g,
		(token, bare) => (token[0] !== "#" ? "" : bare || /[\u2028\u2029]/.test(token) ? "\ufeff" : ""));
	return rest.includes("\ufeff");
}

function summarize(text) {
	const document = parse(text, { noLocation: true });
	const fragments = new Map(), operations = [], found = new Set();
	for (const d of document.definitions) {
		if (d.kind === "FragmentDefinition") {
			if (fragments.has(d.name.value)) return null;
			fragments.set(d.name.value, d);
		} else if (d.kind === "OperationDefinition") operations.push(d);
		else return null;
	}
	const named = operations.map((o) => o.name?.value ?? "");
	if (!operations.length || operations.length > 16 || fragments.size > 64 || new Set(named).size < named.length ||
		(named.includes("") && named.length > 1)) return null;
	for (const o of operations) {
		const seen = new Set();
		const walk = (selections) => selections.every((s) => {
			if (s.kind === "Field") found.add(o.operation[0] + ":" + s.name.value);
			else if (s.kind === "InlineFragment") return walk(s.selectionSet.selections);
			else if (!fragments.has(s.name.value)) return false;
			else if (!seen.has(s.name.value)) {
				seen.add(s.name.value);
				return walk(fragments.get(s.name.value).selectionSet.selections);
			}
			return true;
		});
		if (!walk(o.selectionSet.selections)) return null;
	}
	return operations.map((o) => o.operation[0]).join("") + " " + [...found].sort().join(" ");
}

for (let i = 0; i < Number(count);) {
	let text = many(roll(3) ? 1 : 3, definition, "\n");
	if (roll(2)) text = mutate(text);
	if (text.length > 400) continue;
	let verdict = "refuse";
	try {
		const summary = summarize(text);
		if (summary !== null && !isDoubtful(text)) verdict = "accept " + summary;
	} catch (error) {
		if (/Unexpected (Block)?String/.test(error.message)) continue; // graphql 16 refuses descriptions, which a later specification allows
	}
	const raw = Buffer.from(text);
	if (raw.toString() !== text) continue; // half of a surrogate pair
	process.stdout.write(`${raw.length} ${verdict}\n`);
	process.stdout.write(raw);
	process.stdout.write("\n");
	i++;
}
