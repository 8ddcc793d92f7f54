/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `vethguard release`: ends claimed sandboxes. The daemon checks that nothing of them is left on
 * its side. It cannot vouch for what is inside the namespace (processes, sockets, routes, devices,
 * rules), so the namespace is not used again: another one is prepared under its name.
 */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "cli/commands.h"
#include "cli/prepare/commands.h"
#include "cli/prepare/ready.h"
#include "vethguard/adapter/netns_file.h"

struct release_options {
	struct control_line line;
	struct ready pool;
	bool keep;
};

static const struct option_spec specs[] = {
        {"netns-dir", 0, "DIR", "as for prepare; default: " NETNS_FILE_DIRECTORY},
        {"prefix", 0, "NAME", "as for prepare; default: " READY_PREFIX_DEFAULT},
        {"tap", 0, "NAME", "make this tap in the new namespace, as prepare does"},
        {"keep", 0, NULL, "leave its namespace as it is, and prepare no other"},
        CONTROL_SPEC_SOCKET, CONTROL_SPEC_JSON, CONTROL_SPEC_HELP, {NULL, 0, NULL, NULL}};

static void help(void)
{
	fputs("Usage: vethguard release NAME... [OPTIONS]\n\n"
	      "Ends sandboxes that were claimed: link, rules, names, placeholders and the worker "
	      "with\n"
	      "its connections and CA are gone; the daemon checks this before it answers. The\n"
	      "namespace is replaced by a new one, which is prepared: that needs root. Processes "
	      "in\n"
	      "the old one have no network any more; end them before.\n\nOptions:\n",
	        stdout);
	options_print(specs, stdout);
	fputs("\nExample:\n"
	      "  vethguard release agent-7\n\n"
	      "Exit status: 0 done; 1 the daemon refused, or the namespace cannot be made anew; 2\n"
	      "wrong usage; 3 the daemon cannot be reached, or you may not.\n",
	        stdout);
}

static bool take(void *context, const char *option, const char *value)
{
	struct release_options *o = context;

	if (strcmp(option, "keep") != 0)
		return ready_option_take(&o->pool, option, value);
	o->keep = true;
	return true;
}

/* Returns 0, or an exit status after a message. */
static int renew(const struct release_options *o, const json_t *released, const char **what)
{
	struct ready pool = o->pool;
	const char *path = control_text(released, "netns"), *name;
	size_t count = ready_count_processes(path);
	int rc;

	*what = "its namespace stays as it is";
	if (count)
		fprintf(stderr,
		        "vethguard: warning: %zu process%s run%s in its namespace, without "
		        "network\n",
		        count, count == 1 ? "" : "es", count == 1 ? "s" : "");
	if (o->keep || !ready_owns_path(&pool, path, &name))
		return 0;
	pool.same = strcmp(control_text(released, "addresses"), "same") == 0;
	rc = ready_open(&pool);
	if (!rc)
		rc = ready_make(&pool, name);
	ready_close(&pool);
	*what = rc ? "its namespace is not prepared again" : "a new namespace is prepared";
	return rc;
}

static int release(const struct release_options *o, const char *name)
{
	struct control_answer answer;
	char path[CONTROL_PATH_MAX];
	const json_t *summary;
	const char *what;
	int rc;

	if (!control_path(path, name, "/release"))
		return CLI_USAGE;
	rc = control_call(o->line.socket, "POST", path, NULL, &answer);
	if (rc)
		return rc;
	summary = json_object_get(answer.json, "summary");
	rc = renew(o, answer.json, &what);
	if (o->line.json)
		control_print_json(answer.json);
	else
		printf("%s: released, nothing is left of it; %lld allowed, %lld denied; %s\n", name,
		        (long long)json_integer_value(json_object_get(summary, "allowed")),
		        (long long)json_integer_value(json_object_get(summary, "denied")), what);
	control_answer_free(&answer);
	return rc;
}

int cli_release(int argc, char **argv)
{
	struct release_options o = {.pool = {.directory = NETNS_FILE_DIRECTORY,
	                                    .prefix = READY_PREFIX_DEFAULT,
	                                    .lock = -1}};
	int status = 0;

	(void)argc;
	if (!control_line_read(&o.line, "vethguard release", specs, argv + 1, take, &o))
		return CLI_USAGE;
	if (o.line.help) {
		help();
		return 0;
	}
	if (!o.line.name_count) {
		fputs("vethguard: error: which sandbox? 'vethguard list' names them\n"
		      "Usage: vethguard release NAME... [OPTIONS]\n",
		        stderr);
		return CLI_USAGE;
	}
	o.pool.socket = o.line.socket;
	for (size_t i = 0; i < o.line.name_count && status != CONTROL_UNREACHABLE; i++) {
		int rc = release(&o, o.line.names[i]);

		status = status && rc != CONTROL_UNREACHABLE ? status : rc ? rc : status;
	}
	return status;
}
