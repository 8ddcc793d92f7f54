/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Theory of operation: a change is kept once per kind of destination, scheme, ports and paths; bits
 * tell the methods it holds for. After the comparison each change becomes the parts of a line, and
 * changes that differ only in the destination share one line. Lines that widen come first, since
 * operators look for these.
 */
#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "policy/diff/text.h"
#include "vethguard/policy/body.h"

struct diff_record {
	struct diff_where where;
	struct diff_change change;
};

/* A line before it is written, without its destinations. */
struct diff_draft {
	enum diff_kind kind;
	bool widens, narrows;
	struct slice head, port, tail;
	enum policy_scheme scheme;
	struct diff_names names;
};

static const struct {
	const char *begin, *end;
	bool widens, narrows;
} kinds[] = {
        [DIFF_ALLOWED] = {"+ may: ", "", true, false},
        [DIFF_DENIED] = {"- may no longer: ", "", false, true},
        [DIFF_CREDENTIAL] = {"+ may: ", "", true, false},
        [DIFF_UPGRADE] = {"+ may: ", "", true, false},
        [DIFF_CONNECTION_ALLOWED] = {"+ may connect: ", "", true, false},
        [DIFF_CONNECTION_DENIED] = {"- may no longer connect: ", "", false, true},
        [DIFF_OPENED] = {"- tls: ", " is opened and judged, no longer passed through", false, true},
        [DIFF_UNOPENED] = {"+ tls: ", " is passed through unopened", true, false},
};
static_assert(sizeof(kinds) / sizeof(kinds[0]) == DIFF_KIND_COUNT, "one text per kind");

void diff_text_init(struct diff_text *text, struct arena *arena, const struct diff_methods *methods)
{
	memset(text, 0, sizeof(*text));
	text->arena = arena;
	text->methods = methods;
	intern_init(&text->keys);
	vec_init(&text->records, sizeof(struct diff_record));
	vec_init(&text->notes, sizeof(struct policy_diff_line));
}

void diff_text_fini(struct diff_text *text)
{
	intern_fini(&text->keys);
	vec_fini(&text->records);
	vec_fini(&text->notes);
}

void diff_text_note(struct diff_text *text, bool widens, bool narrows, struct slice note)
{
	struct policy_diff_line line = {.widens = widens, .narrows = narrows};

	slice_escape_controls(note, line.text, sizeof(line.text));
	text->failed |= !vec_append(&text->notes, &line, 1);
}

static void put(char **at, struct slice s)
{
	memcpy(*at, &s.n, sizeof(s.n));
	if (s.n > 0) /* an empty slice may have no address */
		memcpy(*at + sizeof(s.n), s.p, s.n);
	*at += sizeof(s.n) + s.n;
}

static struct slice record_key(
        struct diff_text *text, const struct diff_where *where, const struct diff_change *c)
{
	const struct slice parts[] = {c->pattern, c->within, c->conditions, c->credential, c->was,
	        c->upgrades, c->upgrades_were};
	uint64_t numbers[] = {
	        (uintptr_t)where->names, where->scheme, where->low, where->high, (uint64_t)c->kind};
	size_t n = sizeof(numbers);
	char *p, *at;

	for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++)
		n += parts[i].n + sizeof(parts[i].n);
	at = p = arena_take(text->arena, n);
	if (!p)
		return SLICE("");
	memcpy(at, numbers, sizeof(numbers));
	at += sizeof(numbers);
	for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++)
		put(&at, parts[i]);
	return slice_of(p, n);
}

void diff_text_add(
        struct diff_text *text, const struct diff_where *where, const struct diff_change *change)
{
	struct diff_record record = {*where, *change}, *known;
	bool added;
	uint32_t id;

	if (text->records.n == DIFF_RECORDS_MAX) {
		text->full = true;
		return;
	}
	id = intern_put(&text->keys, record_key(text, where, change), &added);
	if (id == UINT32_MAX || (added && !vec_append(&text->records, &record, 1))) {
		text->failed = true;
		return;
	}
	known = vec_at(&text->records, id);
	for (size_t i = 0; i < DIFF_METHOD_WORDS; i++)
		known->where.methods[i] |= where->methods[i];
}

static struct slice port_words(const struct diff_text *text, const struct diff_where *where)
{
	if (where->low != where->high)
		return arena_printf(text->arena, ":%u-%u", where->low, where->high);
	if (where->low == policy_scheme_default_port(where->scheme))
		return SLICE("");
	return arena_printf(text->arena, ":%u", where->low);
}

static struct slice upgrade_words(const struct diff_text *text, const struct diff_change *c)
{
	struct slice was = c->upgrades_were, now = c->upgrades;
	bool changed = c->kind == DIFF_UPGRADE;

	if (!now.n && !changed)
		return SLICE("");
	return arena_printf(text->arena, "%s%.*s%s%s%.*s%s",
	        now.n ? " with an upgrade to " : " without an upgrade", SLICE_ARG(now),
	        changed ? " (so far " : "",
	        !changed ? ""
	        : was.n  ? "to "
	                 : "without one",
	        SLICE_ARG(was), changed ? ")" : "");
}

/* The words behind the destinations. */
static struct slice tail_words(const struct diff_text *text, const struct diff_change *c)
{
	struct slice was = c->was, now = c->credential, upgrade = upgrade_words(text, c);
	bool changed = c->kind == DIFF_CREDENTIAL;

	return arena_printf(text->arena, "%s%.*s%s%s%.*s%s%.*s%s%s%.*s%s%.*s",
	        c->within.n ? " where " : "", SLICE_ARG(c->within),
	        c->within.n ? " matches as well" : "", c->conditions.n ? " if " : "",
	        SLICE_ARG(c->conditions),
	        now.n     ? " with credential "
	        : changed ? " without a credential"
	                  : "",
	        SLICE_ARG(now), changed ? " (so far " : "",
	        !changed ? ""
	        : was.n  ? "with credential "
	                 : "without one",
	        SLICE_ARG(was), changed ? ")" : kinds[c->kind].end, SLICE_ARG(upgrade));
}

static struct diff_draft draft_of(const struct diff_text *text, const struct diff_record *r)
{
	struct diff_draft draft = {.kind = r->change.kind,
	        .widens = kinds[r->change.kind].widens,
	        .narrows = kinds[r->change.kind].narrows,
	        .scheme = r->where.scheme,
	        .head = diff_method_words(text->methods, text->arena, r->where.methods),
	        .port = arena_printf(text->arena, "%.*s%.*s",
	                SLICE_ARG(port_words(text, &r->where)), SLICE_ARG(r->change.pattern)),
	        .tail = tail_words(text, &r->change),
	        .names = *r->where.names};

	if (r->change.kind == DIFF_CREDENTIAL) {
		draft.narrows = r->change.was.n > 0;
		draft.widens = r->change.credential.n > 0;
	}
	if (r->change.kind == DIFF_UPGRADE) {
		draft.narrows = r->change.upgrades_were.n > 0;
		draft.widens = r->change.upgrades.n > 0;
	}
	return draft;
}

static struct slice draft_key(const struct diff_text *text, const struct diff_draft *d)
{
	return arena_printf(text->arena, "%d %d %.*s|%.*s|%.*s", (int)d->kind, (int)d->scheme,
	        SLICE_ARG(d->head), SLICE_ARG(d->port), SLICE_ARG(d->tail));
}

static void join_names(struct diff_names *names, const struct diff_names *more)
{
	for (size_t i = 0; i < more->count && i < DIFF_NAMES_SHOWN; i++)
		if (names->count + i < DIFF_NAMES_SHOWN)
			names->shown[names->count + i] = more->shown[i];
	names->count += more->count;
}

/* Makes one draft of all changes that differ only in their destinations. */
static void draft_lines(struct diff_text *text, struct vec *drafts)
{
	struct intern keys;

	intern_init(&keys);
	for (size_t i = 0; i < text->records.n && !text->failed; i++) {
		struct diff_draft draft = draft_of(text, vec_at(&text->records, i));
		bool added;
		uint32_t id = intern_put(&keys, draft_key(text, &draft), &added);

		if (id == UINT32_MAX || text->arena->failed ||
		        (added && !vec_append(drafts, &draft, 1)))
			text->failed = true;
		else if (!added)
			join_names(&((struct diff_draft *)vec_at(drafts, id))->names, &draft.names);
	}
	intern_fini(&keys);
}

static const char *begin_of(const struct diff_draft *d)
{
	bool http = d->scheme == POLICY_HTTPS || d->scheme == POLICY_HTTP;

	if ((d->kind == DIFF_CREDENTIAL || d->kind == DIFF_UPGRADE) && !d->widens)
		return "- may: ";
	if (!http && d->kind == DIFF_CONNECTION_ALLOWED)
		return kinds[DIFF_ALLOWED].begin;
	if (!http && d->kind == DIFF_CONNECTION_DENIED)
		return kinds[DIFF_DENIED].begin;
	return kinds[d->kind].begin;
}

static void write_draft(const struct diff_draft *d, struct policy_diff_line *line)
{
	size_t shown = d->names.count < DIFF_NAMES_SHOWN ? d->names.count : DIFF_NAMES_SHOWN;
	char text[16384];
	size_t n = (size_t)snprintf(text, sizeof(text), "%s%.*s", begin_of(d), SLICE_ARG(d->head));

	for (size_t i = 0; i < shown && n < sizeof(text); i++)
		n += (size_t)snprintf(text + n, sizeof(text) - n, "%s%s://%.*s%.*s", i ? ", " : "",
		        policy_scheme_name(d->scheme), SLICE_ARG(d->names.shown[i]),
		        SLICE_ARG(d->port));
	if (shown < d->names.count && n < sizeof(text))
		n += (size_t)snprintf(
		        text + n, sizeof(text) - n, " and %zu more", d->names.count - shown);
	if (n < sizeof(text))
		n += (size_t)snprintf(text + n, sizeof(text) - n, "%.*s", SLICE_ARG(d->tail));
	line->widens = d->widens;
	line->narrows = d->narrows;
	slice_escape_controls(slice_of(text, n < sizeof(text) ? n : sizeof(text) - 1), line->text,
	        sizeof(line->text));
}

static void keep(struct policy_diff *out, const struct policy_diff_line *line)
{
	out->widens |= line->widens;
	out->narrows |= line->narrows;
	if (out->count < POLICY_DIFF_LINES_MAX)
		out->lines[out->count++] = *line;
	else
		out->dropped++;
}

/* The class of a line: 0 widens, 1 narrows, 2 neither. */
static int class_of(bool widens, bool narrows)
{
	return widens ? 0 : narrows ? 1 : 2;
}

static void write_class(
        struct diff_text *text, const struct vec *drafts, int class, struct policy_diff *out)
{
	struct policy_diff_line line;

	for (size_t i = 0; i < text->notes.n; i++) {
		const struct policy_diff_line *note = vec_at(&text->notes, i);

		if (class_of(note->widens, note->narrows) == class)
			keep(out, note);
	}
	for (size_t i = 0; i < drafts->n; i++) {
		const struct diff_draft *d = vec_at(drafts, i);

		if (class_of(d->widens, d->narrows) != class)
			continue;
		write_draft(d, &line);
		keep(out, &line);
	}
}

void policy_diff_fini(struct policy_diff *diff)
{
	free(diff->lines);
	memset(diff, 0, sizeof(*diff));
}

int diff_text_write(struct diff_text *text, bool incomplete, struct policy_diff *out)
{
	struct vec drafts;

	vec_init(&drafts, sizeof(struct diff_draft));
	if (incomplete || text->full)
		diff_text_note(text, true, true,
		        SLICE("+ the policies are too large to be compared in every part: more may "
		              "be possible than is listed here, or less"));
	draft_lines(text, &drafts);
	out->incomplete = incomplete || text->full;
	out->lines = calloc(POLICY_DIFF_LINES_MAX, sizeof(*out->lines));
	if (out->lines && !text->failed && !text->arena->failed)
		for (int class = 0; class < 3; class ++)
			write_class(text, &drafts, class, out);
	out->differs = out->count > 0;
	vec_fini(&drafts);
	if (out->lines && !text->failed && !text->arena->failed)
		return 0;
	policy_diff_fini(out);
	return -ENOMEM;
}
