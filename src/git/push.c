/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Theory of operation: the body of a push (gitprotocol-pack(5), "Reference Update Request") has, in
 * this order:
 * - lines "shallow ID"
 * - lines "OLD NEW REF", of which the first has capabilities behind a NUL; or "push-cert" with the
 *   capabilities, and the lines in a push certificate
 * - a flush
 * - push options and a flush, if the capabilities say so
 * - a pack, unless refs are only deleted
 * A body that is only a flush changes nothing: git sends it to find out if it may push.
 *
 * A capability that is not known here is refused, because it may change what the rest means.
 */
#include "git/push.h"

#include <errno.h>
#include <stdlib.h>

#include "git/commits.h"
#include "git/pack.h"
#include "git/pkt.h"
#include "git/ref.h"
#include "vethguard/git/body.h"

static const char not_lines[] = "the push is not in the lines of git's protocol";
static const char unknown_capability[] =
        "the push asks for a capability of git's protocol that vethguard does not know";
static const char bad_command[] = "the push has a line that is no command of git's protocol";
static const char bad_certificate[] =
        "the push has a certificate that servers could read differently";
static const char too_many[] = "the push has too many refs, options or other lines";
static const char bad_end[] = "the push lacks its pack, or has bytes behind its end";
static const char no_memory[] = "no memory to read the push";

struct push {
	struct policy_git *git;
	struct slice rest;
	size_t id_n;     /* bytes of an id; 0: no line has told it yet */
	size_t format_n; /* ... as the capabilities say; 0: they do not */
	bool takes_options, certified;
	struct slice *shallow; /* ids as written */
	size_t shallow_count;
	size_t room; /* for commands */
	const char *fault;
};

static bool fail(struct push *p, const char *fault)
{
	p->fault = fault;
	return false;
}

/* --- capabilities --- */

static bool take_capability(struct push *p, struct slice name)
{
	static const char *const plain[] = {
	        "delete-refs", "ofs-delta", "quiet", "atomic", "side-band", NULL};

	if (slice_starts_with(name, SLICE("object-format="))) {
		bool again = p->format_n > 0;

		p->format_n = slice_equals(name, SLICE("object-format=sha256")) ? 32 : 20;
		return !again &&
		       (p->format_n == 32 || slice_equals(name, SLICE("object-format=sha1")));
	}
	if (slice_starts_with(name, SLICE("agent=")) ||
	        slice_starts_with(name, SLICE("session-id=")))
		return true;
	if (slice_equals(name, SLICE("report-status")) ||
	        slice_equals(name, SLICE("report-status-v2")))
		return p->git->reports = true;
	if (slice_equals(name, SLICE("side-band-64k")))
		return p->git->bands = true;
	if (slice_equals(name, SLICE("push-options")))
		return p->takes_options = true;
	for (size_t i = 0; plain[i]; i++)
		if (slice_equals(name, slice_from_string(plain[i])))
			return true;
	return false;
}

static bool take_capabilities(struct push *p, struct slice rest)
{
	if (!pkt_is_text(rest))
		return fail(p, not_lines);
	while (rest.n) {
		ptrdiff_t space = slice_find_byte(rest, ' ');
		size_t n = space < 0 ? rest.n : (size_t)space;
		struct slice name = slice_of(rest.p, n);

		if (name.n && !take_capability(p, name))
			return fail(p, unknown_capability);
		n += space >= 0;
		rest = slice_of(rest.p + n, rest.n - n);
	}
	return true;
}

/* --- commands --- */

static bool is_zero(const uint8_t *id, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (id[i])
			return false;
	return true;
}

static bool make_room(struct push *p)
{
	size_t room = p->room ? 2 * p->room : 8;
	struct policy_git_command *more;

	if (p->git->command_count == GIT_COMMANDS_MAX)
		return fail(p, too_many);
	if (p->git->command_count < p->room)
		return true;
	more = realloc(p->git->commands, room * sizeof(*more));
	if (!more)
		return fail(p, no_memory);
	p->git->commands = more;
	p->room = room;
	return true;
}

/* Returns the bytes of an id, by the hex digits before the first space; 0: they are no id. */
static size_t id_length(struct slice line)
{
	ptrdiff_t space = slice_find_byte(line, ' ');

	return space == 40 ? 20 : space == 64 ? 32 : 0;
}

static bool take_command(struct push *p, struct slice line)
{
	struct policy_git_command one = {.ref = SLICE("")};
	bool from_nothing, to_nothing;

	if (!p->id_n)
		p->id_n = id_length(line);
	if (!make_room(p))
		return false;
	if (!p->id_n || !pkt_id(&line, p->id_n, one.from) || line.n == 0 || line.p[0] != ' ')
		return fail(p, bad_command);
	line = slice_of(line.p + 1, line.n - 1);
	if (!pkt_id(&line, p->id_n, one.to) || line.n == 0 || line.p[0] != ' ')
		return fail(p, bad_command);
	one.ref = slice_of(line.p + 1, line.n - 1);
	from_nothing = is_zero(one.from, p->id_n);
	to_nothing = is_zero(one.to, p->id_n);
	if (!ref_is_sound(one.ref) || (from_nothing && to_nothing))
		return fail(p, bad_command);
	one.change = from_nothing                             ? POLICY_GIT_CREATES
	             : to_nothing                             ? POLICY_GIT_DELETES
	             : memcmp(one.from, one.to, p->id_n) == 0 ? POLICY_GIT_KEEPS
	                                                      : POLICY_GIT_UPDATES;
	p->git->commands[p->git->command_count++] = one;
	return true;
}

static bool take_shallow(struct push *p, struct slice id)
{
	uint8_t raw[POLICY_GIT_ID_MAX];
	struct slice digits = id;

	if (p->shallow_count == GIT_SHALLOW_MAX)
		return fail(p, too_many);
	if (!p->shallow)
		p->shallow = calloc(GIT_SHALLOW_MAX, sizeof(*p->shallow));
	if (!p->shallow)
		return fail(p, no_memory);
	if ((id.n != 40 && id.n != 64) || !pkt_id(&digits, id.n / 2, raw))
		return fail(p, bad_command);
	p->shallow[p->shallow_count++] = id;
	return true;
}

/* --- certificates --- */

static bool is_header(struct slice line)
{
	static const char *const names[] = {
	        "certificate version ", "pusher ", "pushee ", "nonce ", "push-option ", NULL};

	for (size_t i = 0; names[i]; i++)
		if (slice_starts_with(line, slice_from_string(names[i])))
			return true;
	return false;
}

enum part { PART_HEADERS, PART_COMMANDS, PART_SIGNATURE };

/* Takes one line of a certificate, without its line feed. */
static bool take_certified(struct push *p, enum part *part, struct slice line)
{
	bool begins = slice_starts_with(line, SLICE("-----BEGIN "));

	if (!pkt_is_text(line))
		return fail(p, bad_certificate);
	if (*part == PART_HEADERS) {
		if (line.n == 0)
			*part = PART_COMMANDS;
		return line.n == 0 || is_header(line) || fail(p, bad_certificate);
	}
	if (*part == PART_COMMANDS && !begins)
		return take_command(p, line);
	/* git reads the last signature, other servers the first one: only one is allowed */
	if (*part == PART_SIGNATURE && begins)
		return fail(p, bad_certificate);
	*part = PART_SIGNATURE;
	return true;
}

static bool read_certificate(struct push *p)
{
	enum part part = PART_HEADERS;
	struct slice line;

	for (unsigned i = 0; i < GIT_CERTIFICATE_LINES_MAX; i++) {
		if (pkt_next(&p->rest, &line) != PKT_LINE || line.n == 0 ||
		        line.p[line.n - 1] != '\n')
			return fail(p, bad_certificate);
		if (slice_equals(line, SLICE("push-cert-end\n")))
			return part == PART_SIGNATURE || fail(p, bad_certificate);
		if (!take_certified(p, &part, pkt_chomp(line)))
			return false;
	}
	return fail(p, too_many);
}

/* --- the whole body --- */

/* Takes the first line that is no "shallow": it has the capabilities. */
static bool take_first(struct push *p, struct slice line)
{
	ptrdiff_t nul = slice_find_byte(line, '\0');
	struct slice text = nul < 0 ? line : slice_of(line.p, (size_t)nul);
	struct slice capabilities =
	        nul < 0 ? SLICE("") : slice_of(line.p + nul + 1, line.n - (size_t)nul - 1);

	p->certified = slice_equals(text, SLICE("push-cert"));
	if (!p->certified && !take_command(p, text))
		return false;
	if (!take_capabilities(p, capabilities))
		return false;
	return !p->certified || read_certificate(p);
}

static bool read_commands(struct push *p)
{
	struct slice line;
	bool first = true;
	enum pkt kind;

	while ((kind = pkt_next(&p->rest, &line)) == PKT_LINE) {
		line = pkt_chomp(line);
		if (p->certified)
			return fail(p, bad_certificate);
		if (first && slice_starts_with(line, SLICE("shallow "))) {
			if (!take_shallow(p, slice_of(line.p + 8, line.n - 8)))
				return false;
			continue;
		}
		if (first ? !take_first(p, line) : !take_command(p, line))
			return false;
		first = false;
	}
	if (kind != PKT_FLUSH)
		return fail(p, not_lines);
	/* ids are SHA-1 if no capability names the format */
	return !p->id_n || p->id_n == (p->format_n ? p->format_n : 20) || fail(p, bad_command);
}

static bool read_options(struct push *p)
{
	struct policy_git *git = p->git;
	struct slice line;
	enum pkt kind;

	git->options = calloc(GIT_OPTIONS_MAX, sizeof(*git->options));
	if (!git->options)
		return fail(p, no_memory);
	while ((kind = pkt_next(&p->rest, &line)) == PKT_LINE) {
		line = pkt_chomp(line);
		if (git->option_count == GIT_OPTIONS_MAX)
			return fail(p, too_many);
		if (line.n == 0 || line.n > GIT_LINE_MAX || !pkt_is_text(line))
			return fail(p, not_lines);
		git->options[git->option_count++] = line;
	}
	return kind == PKT_FLUSH || fail(p, not_lines);
}

static bool has_change(const struct policy_git *git, enum policy_git_change change)
{
	for (size_t i = 0; i < git->command_count; i++)
		if (git->commands[i].change == change)
			return true;
	return false;
}

static bool only_deletes(const struct policy_git *git)
{
	for (size_t i = 0; i < git->command_count; i++)
		if (git->commands[i].change != POLICY_GIT_DELETES)
			return false;
	return true;
}

static void end_histories(const struct push *p, struct commits *commits)
{
	uint8_t id[POLICY_GIT_ID_MAX];

	for (size_t i = 0; i < p->shallow_count; i++) {
		struct slice digits = p->shallow[i];
		struct commit *commit = NULL;

		if (digits.n == 2 * commits->id_n && pkt_id(&digits, commits->id_n, id))
			commit = commits_find(commits, id);
		if (commit)
			commit->ends = true;
	}
}

/* Marks the updates that the pack proves to lose no commits. A pack that cannot be read proves
 * nothing. */
static void prove(struct push *p)
{
	struct commits commits;

	commits_init(&commits, p->id_n);
	if (!pack_read(p->rest, &commits)) {
		end_histories(p, &commits);
		for (size_t i = 0; i < p->git->command_count; i++) {
			struct policy_git_command *one = &p->git->commands[i];

			if (one->change == POLICY_GIT_UPDATES &&
			        commits_descends(&commits, one->to, one->from))
				one->change = POLICY_GIT_FORWARDS;
		}
	}
	commits_fini(&commits);
}

const char *push_read(struct policy_git *git, struct slice body)
{
	struct push p = {.git = git, .rest = body};
	bool good = read_commands(&p) && (!p.takes_options || read_options(&p));

	if (good && (only_deletes(git) ? p.rest.n > 0 : !pack_begins(p.rest)))
		good = fail(&p, bad_end);
	if (good && has_change(git, POLICY_GIT_UPDATES))
		prove(&p);
	free(p.shallow);
	return p.fault;
}
