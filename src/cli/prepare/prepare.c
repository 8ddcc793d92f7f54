/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `vethguard prepare`: makes network namespaces, each with a link to a gate that refuses
 * everything, until as many are ready as were asked for. It may run again at any time, from a timer
 * for example: it makes the missing ones, and removes those that nobody guards any more.
 */
#include <stdio.h>
#include <string.h>

#include "cli/commands.h"
#include "cli/option_wrong.h"
#include "cli/prepare/commands.h"
#include "cli/prepare/ready.h"
#include "cli/prepare/tap.h"
#include "vethguard/adapter/netns_file.h"

#define COUNT_MAX 2000 /* as many sandboxes as a daemon has at most */

struct prepare_options {
	struct control_line line;
	struct ready pool;
	uint64_t count;
	bool counted, remove;
};

static const struct option_spec specs[] = {
        {"count", 'n', "N", "how many are to be ready afterwards"},
        {"addresses", 0, "WHICH",
                "same: every link has the same MACs, so that clones\n"
                "of one snapshot run behind any of them; own (the\n"
                "default): each has its own; the IP addresses are\n"
                "the same for all in any case"},
        {"tap", 0, "NAME",
                "with --addresses same: make this tap device in each,\n"
                "for a virtual machine that has the link's address\n"
                "and MAC (see docs/prepare.md)"},
        {"netns-dir", 0, "DIR", "where they are; default: " NETNS_FILE_DIRECTORY},
        {"prefix", 0, "NAME",
                "they are called NAME-1, NAME-2, ...; default: " READY_PREFIX_DEFAULT},
        {"remove", 0, NULL, "take away those that nobody has claimed"}, CONTROL_SPEC_SOCKET,
        CONTROL_SPEC_JSON, CONTROL_SPEC_HELP, {NULL, 0, NULL, NULL}};

static void help(void)
{
	fputs("Usage: vethguard prepare --count N [OPTIONS]\n"
	      "       vethguard prepare --remove [OPTIONS]\n\n"
	      "Makes network namespaces with a link to a gate that refuses everything, until N of\n"
	      "them are ready. 'vethguard claim' gives one a name and a policy within a "
	      "millisecond.\n"
	      "Namespaces whose sandbox has ended are taken away. Needs root.\n\nOptions:\n",
	        stdout);
	options_print(specs, stdout);
	fputs("\nExamples:\n"
	      "  vethguard prepare --count 100\n"
	      "  vethguard prepare --count 50 --addresses same --prefix vm\n"
	      "  vethguard prepare --remove\n\n"
	      "Exit status: 0 done; 1 the daemon refused, or a namespace cannot be made; 2 wrong\n"
	      "usage; 3 the daemon cannot be reached, or you may not.\n",
	        stdout);
}

bool ready_option_take(struct ready *pool, const char *option, const char *value)
{
	if (strcmp(option, "netns-dir") == 0) {
		pool->directory = value;
		if (value[0] != '/')
			return option_wrong(option, value, "an absolute path is needed");
		if (strlen(value) >= READY_DIRECTORY_MAX)
			return option_wrong(option, value, "it is too long");
		return option_is_utf8(option, value);
	}
	if (strcmp(option, "tap") == 0) {
		pool->tap = value;
		return tap_name_is_valid(value) ||
		       option_wrong(option, value, "not a name that a device can have");
	}
	pool->prefix = value;
	return (strlen(value) <= READY_PREFIX_MAX &&
	               message_name_is_plain(slice_from_string(value))) ||
	       option_wrong(option, value, "up to 32 letters, digits, '.', '_' and '-'");
}

static bool take(void *context, const char *option, const char *value)
{
	struct prepare_options *o = context;

	if (strcmp(option, "count") == 0) {
		o->counted = true;
		return slice_to_u64(slice_from_string(value), COUNT_MAX, &o->count) ||
		       option_wrong(option, value, "a number, at most 2000");
	}
	if (strcmp(option, "addresses") == 0) {
		o->pool.same = strcmp(value, "same") == 0;
		return o->pool.same || strcmp(value, "own") == 0 ||
		       option_wrong(option, value, "same or own");
	}
	if (strcmp(option, "remove") == 0) {
		o->remove = true;
		return true;
	}
	return ready_option_take(&o->pool, option, value);
}

static size_t count_ready(const struct ready *pool, const json_t *prepared)
{
	const json_t *all = json_object_get(prepared, "prepared");
	const char *name;
	size_t count = 0, i;

	for (i = 0; i < json_array_size(all); i++)
		count +=
		        ready_owns_path(pool, control_text(json_array_get(all, i), "netns"), &name);
	return count;
}

static int make_missing(const struct ready *pool, size_t missing, size_t *made)
{
	char name[MESSAGE_NAME_MAX + 1];
	unsigned number = 0;
	int rc = 0;

	while (rc == 0 && *made < missing) {
		if (!ready_next_name(pool, &number, name)) {
			fprintf(stderr, "vethguard: error: no name %s-N is free in %s\n",
			        pool->prefix, pool->directory);
			return CONTROL_REFUSED;
		}
		rc = ready_make(pool, name);
		*made += rc == 0;
	}
	return rc;
}

static void tell(const struct prepare_options *o, size_t ready, size_t made, size_t removed)
{
	if (o->line.json)
		printf("{\"ready\": %zu, \"made\": %zu, \"removed\": %zu}\n", ready, made, removed);
	else if (o->remove)
		printf("%zu removed\n", removed);
	else
		printf("%zu ready in %s, %zu of them made now\n", ready, o->pool.directory, made);
}

static int fill(const struct prepare_options *o, const json_t *prepared)
{
	const size_t ready = count_ready(&o->pool, prepared);
	struct control_answer sandboxes;
	size_t made = 0;
	int rc = control_call(o->pool.socket, "GET", "/sandboxes", NULL, &sandboxes);

	if (rc)
		return rc;
	/* If the list is too long for one answer, it comes without the namespaces. */
	if (!json_is_true(json_object_get(sandboxes.json, "brief")))
		ready_sweep(&o->pool, sandboxes.json, prepared);
	control_answer_free(&sandboxes);
	if (o->count > ready)
		rc = make_missing(&o->pool, o->count - ready, &made);
	tell(o, ready + made, made, 0);
	return rc;
}

static int remove_all(const struct prepare_options *o, const json_t *prepared)
{
	const json_t *all = json_object_get(prepared, "prepared");
	struct control_answer answer;
	char path[CONTROL_PATH_MAX];
	size_t i, removed = 0;
	const char *name;
	int rc = 0;

	for (i = 0; rc == 0 && i < json_array_size(all); i++) {
		const json_t *one = json_array_get(all, i);

		if (!ready_owns_path(&o->pool, control_text(one, "netns"), &name))
			continue;
		if (!control_path(path, control_text(one, "name"), ""))
			return CONTROL_REFUSED;
		/* 404: the namespace has gone by itself. */
		rc = control_call_or(o->pool.socket, "DELETE", path, NULL, 404, &answer);
		if (rc == 0)
			control_answer_free(&answer);
		if (rc == 0)
			rc = ready_remove(&o->pool, name);
		removed += rc == 0;
	}
	tell(o, 0, 0, removed);
	return rc;
}

static int run(struct prepare_options *o)
{
	struct control_answer prepared;
	int rc = ready_open(&o->pool);

	if (!rc)
		rc = control_call(o->pool.socket, "GET", "/prepared", NULL, &prepared);
	if (!rc) {
		rc = o->remove ? remove_all(o, prepared.json) : fill(o, prepared.json);
		control_answer_free(&prepared);
	}
	ready_close(&o->pool);
	return rc;
}

static const char *objection(const struct prepare_options *o)
{
	if (o->line.name_count)
		return "prepare takes options only";
	if (o->counted == o->remove)
		return "say --count N, or --remove";
	if (o->pool.tap && !o->pool.same)
		return "--tap needs --addresses same: the machine has to know its MAC";
	return NULL;
}

int cli_prepare(int argc, char **argv)
{
	struct prepare_options o = {.pool = {.directory = NETNS_FILE_DIRECTORY,
	                                    .prefix = READY_PREFIX_DEFAULT,
	                                    .lock = -1}};

	const char *what;

	(void)argc;
	if (!control_line_read(&o.line, "vethguard prepare", specs, argv + 1, take, &o))
		return CLI_USAGE;
	if (o.line.help) {
		help();
		return 0;
	}
	what = objection(&o);
	if (what) {
		fprintf(stderr, "vethguard: error: %s\nSee 'vethguard prepare --help'.\n", what);
		return CLI_USAGE;
	}
	o.pool.socket = o.line.socket;
	return run(&o);
}
