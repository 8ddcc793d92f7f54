/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `vethguard detach`: ends the guard of named sandboxes or of all. An interface is open afterwards,
 * so --all asks first; if nobody can be asked, --yes is required.
 */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "cli/commands.h"
#include "cli/attach/named.h"
#include "vethguard/base/slice.h"

#define STATUS_NOT_FOUND 404
#define NAMES_SHOWN_MAX 10

static void print_done(const char *name, const json_t *json)
{
	const json_t *summary = json_object_get(json, "summary");
	const char *opened = control_text(json, "opened");
	char shown[64];

	if (json_is_object(summary))
		printf("%s: detached; %lld allowed, %lld denied, %lld packets dropped, %lld "
		       "findings\n",
		        name, (long long)json_integer_value(json_object_get(summary, "allowed")),
		        (long long)json_integer_value(json_object_get(summary, "denied")),
		        (long long)json_integer_value(json_object_get(summary, "dropped")),
		        (long long)json_integer_value(json_object_get(summary, "findings")));
	else
		printf("%s: detached\n", name);
	if (opened[0])
		printf("%s: interface %s is open: nothing guards it any more\n", name,
		        slice_escape(slice_from_string(opened), shown, sizeof(shown)));
	fflush(stdout); /* each one may take some time */
}

/* gone: accept that the sandbox has ended by itself meanwhile. */
static int detach(const struct control_line *line, const char *name, bool gone)
{
	char path[CONTROL_PATH_MAX];
	struct control_answer answer;
	int rc;

	if (!control_path(path, name, ""))
		return CLI_USAGE;
	rc = control_call_or(
	        line->socket, "DELETE", path, NULL, gone ? STATUS_NOT_FOUND : 0, &answer);
	if (rc)
		return rc;
	if (line->json)
		control_print_json(answer.json);
	else if (answer.status == STATUS_NOT_FOUND)
		printf("%s: it had ended by itself already\n", name);
	else
		print_done(name, answer.json);
	control_answer_free(&answer);
	return 0;
}

static int detach_one(
        const struct control_line *line, const struct named_options *options, const char *name)
{
	(void)options;
	return detach(line, name, false);
}

static const struct option_spec detach_specs[] = {{"all", 'a', NULL, "every sandbox"},
        {"yes", 'y', NULL, "with --all: do not ask"}, CONTROL_SPEC_SOCKET, CONTROL_SPEC_JSON,
        CONTROL_SPEC_HELP, {NULL, 0, NULL, NULL}};

static const struct named_command detach_command = {"vethguard detach",
        "NAME...|--all [--yes] [OPTIONS]",
        "Stops guarding sandboxes: requests under way have two seconds to finish, then\nlink, "
        "rules and state are removed. What was attached by --netns, --pid or\n"
        "--container has no network afterwards. An interface is open afterwards: it has the\n"
        "network of the host that it had before. To keep one cut off, 'vethguard pause' it.\n"
        "--all asks first, and needs --yes where there is no terminal. It continues when "
        "one\ncannot be detached.",
        "  vethguard detach agent-7\n"
        "  vethguard detach --all --yes\n",
        detach_specs, detach_one};

/* --- all of them --- */

static void list_names(FILE *out, const json_t *sandboxes)
{
	const size_t count = json_array_size(sandboxes);
	char shown[128];

	for (size_t i = 0; i < count && i < NAMES_SHOWN_MAX; i++)
		fprintf(out, "  %s\n",
		        slice_escape(slice_from_string(
		                             control_text(json_array_get(sandboxes, i), "name")),
		                shown, sizeof(shown)));
	if (count > NAMES_SHOWN_MAX)
		fprintf(out, "  and %zu more: 'vethguard list' shows them\n",
		        count - NAMES_SHOWN_MAX);
}

static size_t count_interfaces(const json_t *sandboxes)
{
	const json_t *sandbox;
	size_t i, n = 0;

	for (i = 0; i < json_array_size(sandboxes); i++) {
		sandbox = json_array_get(sandboxes, i);
		n += strcmp(control_text(json_object_get(sandbox, "attachment"), "kind"),
		             "interface") == 0;
	}
	return n;
}

/* True for "y", "Y" or "yes" and nothing else. */
static bool says_yes(void)
{
	char text[16];

	if (!fgets(text, sizeof(text), stdin))
		return false;
	text[strcspn(text, "\r\n")] = '\0';
	return strcmp(text, "y") == 0 || strcmp(text, "Y") == 0 || strcmp(text, "yes") == 0;
}

/* Returns 0: do it; or an exit status, after a message. */
static int confirm(const json_t *sandboxes)
{
	const size_t count = json_array_size(sandboxes), open = count_interfaces(sandboxes);

	if (!isatty(STDIN_FILENO) || !isatty(STDERR_FILENO)) {
		fprintf(stderr,
		        "vethguard: error: there is no terminal to ask whether to detach %zu "
		        "sandbox%s: give --yes\n",
		        count, count == 1 ? "" : "es");
		return CLI_USAGE;
	}
	fprintf(stderr, "The guard of %zu sandbox%s ends:\n", count, count == 1 ? "" : "es");
	list_names(stderr, sandboxes);
	if (open)
		fprintf(stderr, "%zu of them %s open afterwards: nothing guards %s then.\n", open,
		        open == 1 ? "is an interface, which is" : "are interfaces, which are",
		        open == 1 ? "it" : "them");
	fputs("Detach? [y/N] ", stderr);
	fflush(stderr);
	if (says_yes())
		return 0;
	fputs("Nothing was detached.\n", stderr);
	return CONTROL_REFUSED;
}

static int detach_each(const struct control_line *line, const json_t *sandboxes)
{
	const size_t count = json_array_size(sandboxes);
	size_t done = 0;
	int status = 0;

	for (size_t i = 0; i < count && status != CONTROL_UNREACHABLE; i++) {
		int rc = detach(line, control_text(json_array_get(sandboxes, i), "name"), true);

		done += rc == 0;
		status = rc == CONTROL_UNREACHABLE || !status ? rc : status;
	}
	if (done < count)
		fprintf(stderr, "vethguard: error: %zu of %zu sandboxes %s not detached\n",
		        count - done, count, count - done == 1 ? "was" : "were");
	if (!line->json)
		printf("%zu detached\n", done);
	return status;
}

static int detach_all(const struct control_line *line, bool yes)
{
	struct control_answer answer;
	const json_t *sandboxes;
	int status = control_call(line->socket, "GET", "/sandboxes", NULL, &answer);

	if (status)
		return status;
	sandboxes = json_object_get(answer.json, "sandboxes");
	if (json_array_size(sandboxes) > 0 && !yes)
		status = confirm(sandboxes);
	if (status == 0)
		status = detach_each(line, sandboxes);
	control_answer_free(&answer);
	return status;
}

int cli_detach(int argc, char **argv)
{
	struct control_line line;
	struct named_options options;
	int rc = named_begin(&detach_command, argv + 1, &line, &options);

	(void)argc;
	if (rc >= 0)
		return rc;
	if (options.all == (line.name_count > 0))
		return named_usage(
		        &detach_command, options.all ? "give names or --all, not both"
		                                     : "which sandbox? Name it, or give --all");
	if (options.yes && !options.all)
		return named_usage(&detach_command, "--yes is for --all");
	return options.all ? detach_all(&line, options.yes)
	                   : named_each(&detach_command, &line, &options);
}
