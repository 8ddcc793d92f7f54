# SPDX-License-Identifier: Apache-2.0
"""Pages of the documentation whose commands are run as they are printed (test_guides.py, attach/test_page.py, tests/hour).

What a fenced block is, its language says:

- `sh`: a script, which has to succeed.
- `console`: commands after `$ `, going on after `> `, each followed by what it prints. A line `...` stands for any lines, and in a line it
  stands for any characters. Times, random names, fingerprints and numbers of spaces may differ. Each command has to succeed.
- any other (`yaml`, `text`): not run. Where the text before it ends in "Save this as `NAME`:", that file is written.

A block without a language, and commands in an indented block, are faults of the page. A comment that the reader does not see says of the
block after it: `<!-- elsewhere: COMMAND -->`, which command runs it; `<!-- not run: REASON -->`, why none does."""
import difflib
import os
import re
import shlex

FENCE = re.compile(r"(?ms)^```([^\n]*)\n(.*?)^```$")
MARK = re.compile(r"<!-- (elsewhere|not run): ([^\n]+) -->\n\Z")
SAVED = re.compile(r"Save this as `([\w./-]+)`:\n\n\Z")
INDENTED = re.compile(r"(?m)^    (?:sudo|make|vethguard|docker|podman|curl|systemctl|apt|git) ")
LANGUAGES = ("sh", "console", "yaml", "text", "json", "python", "js")
VARIES = [(r"\d{4}-\d\d-\d\d[ T]\d\d:\d\d:\d\dZ?", "TIME"), (r"\brun-[0-9a-f]{8}\b", "run-NAME"), (r"[0-9a-f]{16,}", "HEX"),
          (r"\d+(\.\d+)? ms\b", "N ms"), (r"/run/vethguard-lab-\w+", "LAB"), (r"[ \t]+", " ")]
ANY = "..."


class Block:
    """number: the line of the page on which it begins. commands: [(text, [lines shown] or None)]. file: (name, text) or None."""

    def __init__(self, page, text, match):
        self.page, self.number = page, text.count("\n", 0, match.start()) + 1
        self.language, body = match[1], match[2]
        before = text[:match.start()]
        mark, saved = MARK.search(before), SAVED.search(before)
        self.elsewhere = mark[2] if mark and mark[1] == "elsewhere" else None
        self.not_run = mark[2] if mark and mark[1] == "not run" else None
        self.file = (saved[1], body) if saved else None
        self.commands = [(body, None)] if self.language == "sh" else self.session(body) if self.language == "console" else []

    def session(self, body):
        found = []
        for line in body.splitlines():
            if line.startswith("$ "):
                found.append((line[2:] + "\n", []))
            elif not found:
                raise AssertionError(f"{self.page}:{self.number}: a console block begins with a command")
            elif line.startswith("> ") and not found[-1][1]:
                found[-1] = (found[-1][0] + line[2:] + "\n", [])
            else:
                found[-1][1].append(line)
        return found

    def runs(self, elsewhere=None):
        """Here, or where `elsewhere` says."""
        return bool(self.commands or self.file) and not self.not_run and self.elsewhere in (None, elsewhere)


def read(path):
    with open(path) as f:
        return f.read()


def blocks(path):
    text = read(path)
    return [Block(os.path.basename(path), text, m) for m in FENCE.finditer(text)]


def faults(path):
    """Faults of a page's form that would hide commands from the tests, one line each."""
    name, text = os.path.basename(path), read(path)
    found = [f"{b.page}:{b.number}: the block's language is {b.language!r}, not one of {', '.join(LANGUAGES)}"
             for b in blocks(path) if b.language not in LANGUAGES]
    found += [f"{b.page}:{b.number}: read would take the line after it, where the block is pasted" for b in blocks(path)
              if b.language == "sh" and re.search(r"(?m)^read .*\n.", b.commands[0][0])]
    outside = FENCE.sub(lambda m: "\n" * m[0].count("\n"), text)
    found += [f"{name}:{outside.count(chr(10), 0, m.start()) + 1}: commands in an indented block" for m in INDENTED.finditer(outside)]
    marks = len(re.findall(r"<!-- (?:elsewhere|not run)\b", text))
    if marks != sum(bool(b.elsewhere or b.not_run) for b in blocks(path)):
        found.append(f"{name}: a mark that stands before no block, or says nothing")
    if len(re.findall("Save this as", text)) != sum(bool(b.file) for b in blocks(path)):
        found.append(f"{name}: \"Save this as\" without a block")
    return found


def script(found, mark):
    """The blocks as one script of bash: the same shell for all, as a reader has it. Before each command's output there is a
    line MARK N, and a line MARK failed STATUS after what fails, be it in the middle of a block."""
    lines, n = [f"mark={shlex.quote(mark)}", "trap 'status=$?; echo; echo \"$mark failed $status\"' ERR"], 0
    for block in found:
        if block.file:
            lines.append(f"printf %s {shlex.quote(block.file[1])} >{shlex.quote(block.file[0])}")
        for command, _ in block.commands:
            lines += ["echo", f"echo \"$mark {n}\"", command.rstrip("\n")]
            n += 1
    return "\n".join(lines) + "\n"


def outputs(text, mark):
    """{N: (output, status)} of what such a script has printed."""
    found = {}
    for piece in text.split(f"\n{mark} ")[1:]:
        head, _, output = piece.partition("\n")
        if head.startswith("failed"):
            found[max(found)] = (found[max(found)][0] + output, int(head.split()[1]))
        else:
            found[int(head)] = (output, 0)
    return found


def loose(line):
    for pattern, word in VARIES:
        line = re.sub(pattern, word, line)
    return line.strip()


def agree(shown, output):
    """Whether the lines shown are those that came."""
    came, shown = [loose(line) for line in output.rstrip("\n").splitlines()], [loose(line) for line in shown]
    while shown and not shown[-1]:
        shown.pop()
    if shown == [] and came in ([], [""]):
        return True
    pattern = "".join(r"(?:.*\n)*?" if line == ANY else re.escape(line).replace(re.escape(ANY), ".*") + r"\n" for line in shown)
    return re.fullmatch(pattern, "".join(line + "\n" for line in came)) is not None


def difference(shown, output):
    return "\n".join(difflib.unified_diff([loose(s) for s in shown], [loose(s) for s in output.rstrip("\n").splitlines()],
                                          "the page", "the run", lineterm="", n=1))


def rewrite(path, changes):
    """changes: [(block, N of its command, output)]. Puts what came in the place of what the page shows, blocks of a page's end first."""
    lines = read(path).split("\n")
    for block, index, output in sorted(changes, key=lambda c: (-c[0].number, -c[1])):
        at = block.number  # the line after the fence, from 0
        for _ in range(index + 1):
            while not lines[at].startswith("$ "):
                at += 1
            at += 1
        while lines[at].startswith("> "):
            at += 1
        end = at
        while not lines[end].startswith(("$ ", "```")):
            end += 1
        lines[at:end] = [line.rstrip() for line in output.rstrip("\n").splitlines()]
    with open(path, "w") as f:
        f.write("\n".join(lines))
