/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Theory of operation: graphql_read() reads the document once by its grammar (section 2 of the
 * specification). It tells the sink of the fields at the root of an operation at once, and keeps
 * the names of fragments that are spread there. When all definitions are known, it reads each such
 * fragment once more for each kind of operation that spreads it. Nothing is allocated, and the work
 * is bounded: each fragment is read again at most GRAPHQL_OPERATION_COUNT times.
 */
#include "policy/graphql/graphql.h"

#include "policy/graphql/graphql_lexer.h"

struct fragment {
	struct slice name;
	struct slice rest; /* the document from the '{' of the fragment's selections on */
};

struct spread {
	struct slice name;
	enum graphql_operation operation;
};

struct document {
	struct graphql_lexer lexer;
	const struct graphql_sink *sink;
	unsigned fragment_count, operation_count, spread_count;
	struct fragment fragments[GRAPHQL_FRAGMENTS_MAX];
	struct spread spreads[GRAPHQL_SPREADS_MAX];
	struct slice names[GRAPHQL_OPERATIONS_MAX]; /* of operations; empty: without a name */
	bool broken;
	bool selects; /* an operation has selected a field */
};

/* The place of selections in the document. */
struct place {
	bool root;
	enum graphql_operation operation; /* if root */
	unsigned depth;
};

static struct place inside(struct place place)
{
	return (struct place){.depth = place.depth + 1};
}

enum graphql_operation graphql_operation_of(struct slice word)
{
	static const struct slice words[GRAPHQL_OPERATION_COUNT] = {[GRAPHQL_QUERY] = {"query", 5},
	        [GRAPHQL_MUTATION] = {"mutation", 8},
	        [GRAPHQL_SUBSCRIPTION] = {"subscription", 12}};

	for (int i = 0; i < GRAPHQL_OPERATION_COUNT; i++)
		if (slice_equals(word, words[i]))
			return (enum graphql_operation)i;
	return GRAPHQL_OPERATION_COUNT;
}

static bool fail(struct document *d)
{
	d->broken = true;
	return false;
}

static int token(const struct document *d)
{
	return d->lexer.token;
}

/* Goes on to the next token if the current one is the wanted one. Returns false otherwise. */
static bool take(struct document *d, int wanted)
{
	if (token(d) != wanted)
		return false;
	graphql_lexer_next(&d->lexer);
	return true;
}

static bool expect(struct document *d, int wanted)
{
	return take(d, wanted) || fail(d);
}

static bool is_word(const struct document *d, struct slice word)
{
	return token(d) == GRAPHQL_NAME && slice_equals(d->lexer.name, word);
}

/* --- values --- */

static bool read_value(struct document *d, bool constant, unsigned depth);

static bool read_list(struct document *d, bool constant, unsigned depth)
{
	while (!take(d, ']'))
		if (!read_value(d, constant, depth))
			return false;
	return true;
}

/* Reads the members of an object, or arguments, up to the token `end`. */
static bool read_members(struct document *d, int end, bool constant, unsigned depth)
{
	while (!take(d, end))
		if (!expect(d, GRAPHQL_NAME) || !expect(d, ':') || !read_value(d, constant, depth))
			return false;
	return true;
}

static bool read_value(struct document *d, bool constant, unsigned depth)
{
	if (depth == GRAPHQL_DEPTH_MAX)
		return fail(d);
	switch (token(d)) {
	case GRAPHQL_NAME:
	case GRAPHQL_NUMBER:
	case GRAPHQL_STRING:
		graphql_lexer_next(&d->lexer);
		return true;
	case '$':
		graphql_lexer_next(&d->lexer);
		return constant ? fail(d) : expect(d, GRAPHQL_NAME);
	case '[':
		graphql_lexer_next(&d->lexer);
		return read_list(d, constant, depth + 1);
	case '{':
		graphql_lexer_next(&d->lexer);
		return read_members(d, '}', constant, depth + 1);
	default:
		return fail(d);
	}
}

/* Reads arguments, if there are any. */
static bool read_arguments(struct document *d, bool constant, unsigned depth)
{
	if (!take(d, '('))
		return true;
	return token(d) == ')' ? fail(d) : read_members(d, ')', constant, depth);
}

static bool read_directives(struct document *d, bool constant, unsigned depth)
{
	while (take(d, '@'))
		if (!expect(d, GRAPHQL_NAME) || !read_arguments(d, constant, depth))
			return false;
	return true;
}

/* --- selections --- */

static void note_spread(struct document *d, struct slice name, enum graphql_operation operation)
{
	for (unsigned i = 0; i < d->spread_count; i++)
		if (d->spreads[i].operation == operation && slice_equals(d->spreads[i].name, name))
			return;
	if (d->spread_count == GRAPHQL_SPREADS_MAX)
		fail(d);
	else
		d->spreads[d->spread_count++] = (struct spread){name, operation};
}

static bool read_selections(struct document *d, struct place place);

static bool read_field(struct document *d, struct place place)
{
	struct slice name = d->lexer.name;

	graphql_lexer_next(&d->lexer);
	if (take(d, ':')) { /* the name before it was an alias */
		name = d->lexer.name;
		if (!expect(d, GRAPHQL_NAME))
			return false;
	}
	if (place.root) {
		d->selects = true;
		d->sink->field(d->sink->context, place.operation, name);
	}
	if (!read_arguments(d, false, place.depth) || !read_directives(d, false, place.depth))
		return false;
	return token(d) != '{' || read_selections(d, inside(place));
}

/* Reads what follows "...": the name of a fragment, or an inline fragment. */
static bool read_spread(struct document *d, struct place place)
{
	if (token(d) == GRAPHQL_NAME && !is_word(d, SLICE("on"))) {
		if (place.root)
			note_spread(d, d->lexer.name, place.operation);
		graphql_lexer_next(&d->lexer);
		return read_directives(d, false, place.depth);
	}
	if (take(d, GRAPHQL_NAME) && !expect(d, GRAPHQL_NAME))
		return false;
	place.depth++;
	return read_directives(d, false, place.depth) && read_selections(d, place);
}

static bool read_selections(struct document *d, struct place place)
{
	if (place.depth == GRAPHQL_DEPTH_MAX || !expect(d, '{'))
		return fail(d);
	do {
		bool good = token(d) == GRAPHQL_NAME  ? read_field(d, place)
		            : take(d, GRAPHQL_SPREAD) ? read_spread(d, place)
		                                      : fail(d);

		if (!good)
			return false;
	} while (!take(d, '}'));
	return !d->broken;
}

/* --- definitions --- */

static bool read_type(struct document *d)
{
	unsigned lists = 0;

	while (take(d, '['))
		if (++lists == GRAPHQL_DEPTH_MAX)
			return fail(d);
	if (!expect(d, GRAPHQL_NAME))
		return false;
	take(d, '!');
	while (lists-- > 0) {
		if (!expect(d, ']'))
			return false;
		take(d, '!');
	}
	return true;
}

static bool read_variables(struct document *d)
{
	if (!take(d, '('))
		return true;
	do {
		take(d, GRAPHQL_STRING); /* a description */
		if (!expect(d, '$') || !expect(d, GRAPHQL_NAME) || !expect(d, ':') || !read_type(d))
			return false;
		if (take(d, '=') && !read_value(d, true, 0))
			return false;
		if (!read_directives(d, true, 0))
			return false;
	} while (!take(d, ')'));
	return true;
}

/* Refuses, as servers do, two operations of one name, and one without a name beside others. */
static bool add_operation(struct document *d, struct slice name)
{
	for (unsigned i = 0; i < d->operation_count; i++)
		if (name.n == 0 || d->names[i].n == 0 || slice_equals(d->names[i], name))
			return fail(d);
	if (d->operation_count == GRAPHQL_OPERATIONS_MAX)
		return fail(d);
	d->names[d->operation_count++] = name;
	return true;
}

static bool read_operation(struct document *d)
{
	struct place place = {.root = true, .operation = GRAPHQL_QUERY};
	struct slice name = SLICE("");

	if (token(d) != '{') {
		place.operation = graphql_operation_of(d->lexer.name);
		if (place.operation == GRAPHQL_OPERATION_COUNT)
			return fail(d);
		graphql_lexer_next(&d->lexer);
		if (token(d) == GRAPHQL_NAME)
			name = d->lexer.name;
		take(d, GRAPHQL_NAME);
		if (!read_variables(d) || !read_directives(d, false, 0))
			return false;
	}
	d->sink->operation(d->sink->context, place.operation);
	return add_operation(d, name) && read_selections(d, place);
}

static const struct fragment *find_fragment(const struct document *d, struct slice name)
{
	for (unsigned i = 0; i < d->fragment_count; i++)
		if (slice_equals(d->fragments[i].name, name))
			return &d->fragments[i];
	return NULL;
}

static bool read_fragment(struct document *d)
{
	struct slice name = d->lexer.name, on;
	struct fragment *f;

	if (token(d) != GRAPHQL_NAME || slice_equals(name, SLICE("on")) || find_fragment(d, name) ||
	        d->fragment_count == GRAPHQL_FRAGMENTS_MAX)
		return fail(d);
	graphql_lexer_next(&d->lexer);
	on = d->lexer.name;
	if (!expect(d, GRAPHQL_NAME) || !slice_equals(on, SLICE("on")) ||
	        !expect(d, GRAPHQL_NAME) || !read_directives(d, false, 0) || token(d) != '{')
		return fail(d);
	f = &d->fragments[d->fragment_count++];
	f->name = name;
	f->rest = slice_of(d->lexer.p - 1, (size_t)(d->lexer.end - d->lexer.p) + 1);
	return read_selections(d, (struct place){.root = false});
}

static bool read_definition(struct document *d)
{
	bool described = take(d, GRAPHQL_STRING);

	if (token(d) == '{')
		return described ? fail(d) : read_operation(d);
	if (token(d) != GRAPHQL_NAME)
		return fail(d);
	if (!is_word(d, SLICE("fragment")))
		return read_operation(d);
	graphql_lexer_next(&d->lexer);
	return read_fragment(d);
}

/* Tells the sink of the fields of fragments that operations spread at their roots. A fragment that
 * spreads others adds them to the list. */
static bool read_spreads(struct document *d)
{
	for (unsigned i = 0; i < d->spread_count && !d->broken; i++) {
		const struct fragment *f = find_fragment(d, d->spreads[i].name);
		struct place place = {.root = true, .operation = d->spreads[i].operation};

		if (!f)
			return fail(d);
		graphql_lexer_init(&d->lexer, f->rest, GRAPHQL_TOKENS_MAX);
		if (!read_selections(d, place))
			return false;
	}
	return !d->broken;
}

bool graphql_read(struct slice text, const struct graphql_sink *sink)
{
	struct document d;

	memset(&d, 0, offsetof(struct document, fragments));
	d.broken = d.selects = false;
	d.sink = sink;
	graphql_lexer_init(&d.lexer, text, GRAPHQL_TOKENS_MAX);
	do {
		if (!read_definition(&d))
			return false;
	} while (token(&d) != GRAPHQL_END);
	/* Operations whose fragments only spread each other select nothing: servers refuse them. */
	return d.operation_count > 0 && read_spreads(&d) && d.selects;
}
