/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Theory of operation: in protocol versions 0 and 1 a body has lines that say what is wanted, a
 * flush, and lines that say what the client has (gitprotocol-http(5)). In version 2 it has a
 * command, capabilities, a delimiter and arguments (gitprotocol-v2(5)). A fetch changes nothing on
 * the server, so only the form and the names of the lines are checked: nothing else can be sent as
 * a fetch.
 */
#include "git/fetch.h"

#include "git/pkt.h"
#include "vethguard/git/body.h"

/* What may follow a name. */
enum value { VALUE_NONE, VALUE_ID, VALUE_ID_AND_MORE, VALUE_TEXT };

struct word {
	const char *name; /* a name with a value ends in a space or '=' */
	enum value value;
};

static const struct word wants[] = {{"want ", VALUE_ID_AND_MORE}, {"shallow ", VALUE_ID},
        {"deepen ", VALUE_TEXT}, {"deepen-since ", VALUE_TEXT}, {"deepen-not ", VALUE_TEXT},
        {"filter ", VALUE_TEXT}, {NULL, VALUE_NONE}};
static const struct word haves[] = {{"have ", VALUE_ID}, {"done", VALUE_NONE}, {NULL, VALUE_NONE}};
static const struct word capabilities[] = {{"agent=", VALUE_TEXT}, {"object-format=", VALUE_TEXT},
        {"session-id=", VALUE_TEXT}, {NULL, VALUE_NONE}};
static const struct word list_refs[] = {{"peel", VALUE_NONE}, {"symrefs", VALUE_NONE},
        {"unborn", VALUE_NONE}, {"ref-prefix ", VALUE_TEXT}, {NULL, VALUE_NONE}};
static const struct word fetch[] = {{"want ", VALUE_ID}, {"have ", VALUE_ID}, {"done", VALUE_NONE},
        {"thin-pack", VALUE_NONE}, {"no-progress", VALUE_NONE}, {"include-tag", VALUE_NONE},
        {"ofs-delta", VALUE_NONE}, {"shallow ", VALUE_ID}, {"deepen ", VALUE_TEXT},
        {"deepen-relative", VALUE_NONE}, {"deepen-since ", VALUE_TEXT}, {"deepen-not ", VALUE_TEXT},
        {"filter ", VALUE_TEXT}, {"want-ref ", VALUE_TEXT}, {"sideband-all", VALUE_NONE},
        {"packfile-uris ", VALUE_TEXT}, {"wait-for-done", VALUE_NONE}, {NULL, VALUE_NONE}};
static const struct word object_info[] = {
        {"size", VALUE_NONE}, {"oid ", VALUE_ID}, {NULL, VALUE_NONE}};
static const struct word nothing[] = {{NULL, VALUE_NONE}};

static const struct {
	const char *name;
	const struct word *arguments;
} commands[] = {{"command=ls-refs", list_refs}, {"command=fetch", fetch},
        {"command=object-info", object_info}, {"command=bundle-uri", nothing}};

static bool value_is_sound(struct slice value, enum value kind)
{
	uint8_t id[POLICY_GIT_ID_MAX];
	struct slice rest = value;

	if (kind == VALUE_NONE || kind == VALUE_TEXT)
		return (kind == VALUE_TEXT) == (value.n > 0);
	/* the longer id is tried first, because its beginning is a shorter id */
	if (!pkt_id(&rest, 32, id) && !pkt_id(&rest, 20, id))
		return false;
	return rest.n == 0 || (kind == VALUE_ID_AND_MORE && rest.p[0] == ' ');
}

static bool is_one_of(struct slice line, const struct word *words)
{
	line = pkt_chomp(line);
	if (line.n > GIT_LINE_MAX || !pkt_is_text(line))
		return false;
	for (; words->name; words++) {
		struct slice name = slice_from_string(words->name);

		if (slice_starts_with(line, name) &&
		        value_is_sound(slice_of(line.p + name.n, line.n - name.n), words->value))
			return true;
	}
	return false;
}

/* Takes lines off rest. Returns the kind of what comes behind them, or PKT_BAD if a line is none of
 * the words. */
static enum pkt skip_lines(struct slice *rest, const struct word *words)
{
	struct slice line;
	enum pkt kind;

	while ((kind = pkt_next(rest, &line)) == PKT_LINE)
		if (!is_one_of(line, words))
			return PKT_BAD;
	return kind;
}

/* True for the body of a fetch in versions 0 and 1. */
static bool is_negotiation(struct slice rest)
{
	enum pkt kind = skip_lines(&rest, wants);

	if (kind != PKT_FLUSH)
		return false;
	while (kind == PKT_FLUSH)
		kind = skip_lines(&rest, haves);
	return kind == PKT_END;
}

/* True for what follows the line with the command in version 2. */
static bool is_command(struct slice rest, const struct word *arguments)
{
	enum pkt kind = skip_lines(&rest, capabilities);

	if (kind == PKT_DELIM)
		kind = skip_lines(&rest, arguments);
	return kind == PKT_FLUSH && rest.n == 0;
}

bool fetch_is_sound(struct slice body)
{
	struct slice rest = body, line;

	if (pkt_next(&rest, &line) == PKT_LINE)
		for (size_t i = 0; i < sizeof(commands) / sizeof(*commands); i++)
			if (slice_equals(pkt_chomp(line), slice_from_string(commands[i].name)))
				return is_command(rest, commands[i].arguments);
	return is_negotiation(body);
}
