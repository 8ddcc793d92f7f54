/* SPDX-License-Identifier: Apache-2.0 */
/* Theory of operation: what the policy commands share: options, loading, JSON on stdout; and the
 * table of commands. */
#include <errno.h>
#include <stdlib.h>

#include "policy_commands.h"
#include "variable_option.h"

static const char usage[] =
        "usage: vethguard policy check FILE... [--var NAME=VALUE] [--json]\n"
        "       vethguard policy explain FILE METHOD URL [--var NAME=VALUE] [--json]\n"
        "       vethguard policy diff OLD NEW [--var NAME=VALUE] [--json]\n"
        "\n"
        "check    loads each policy with all that it includes and says what is wrong with it;\n"
        "         a note tells what is no fault but probably not meant\n"
        "explain  says what would happen to a request, and for every rule why it matches or not;\n"
        "         METHOD CONNECT asks about a connection: https://, http://, tcp:// or "
        "udp://HOST:PORT\n"
        "diff     says what becomes possible and what no longer is where NEW takes the place of "
        "OLD\n"
        "\n"
        "--var gives ${NAME} of the policies its value; it may be repeated\n"
        "\n"
        "exit status: 0 right, allowed or the same, 1 denied or different, 2 wrong usage or a "
        "policy that does not load\n";

static const struct {
	const char *name;
	int (*run)(int argc, char **argv);
} commands[] = {{"check", policy_check_command}, {"explain", policy_explain_command},
        {"diff", policy_diff_command}};

int cli_policy(int argc, char **argv)
{
	if (argc >= 2)
		for (size_t i = 0; i < sizeof(commands) / sizeof(commands[0]); i++)
			if (strcmp(argv[1], commands[i].name) == 0)
				return commands[i].run(argc - 1, argv + 1);
	if (argc >= 2 && (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0)) {
		fputs(usage, stdout);
		return POLICY_EXIT_GOOD;
	}
	if (argc >= 2) {
		char escaped[128];

		fprintf(stderr, "vethguard: error: policy has no command %s\n",
		        slice_escape(slice_from_string(argv[1]), escaped, sizeof(escaped)));
	}
	fputs(usage, stderr);
	return POLICY_EXIT_BAD;
}

/* "--var NAME=VALUE" or "--var=NAME=VALUE" at argv[*i]; moves *i on. */
static bool take_variable(int argc, char **argv, int *i, struct policy_options *out)
{
	const char *value = argv[*i] + strlen("--var");

	if (*value == '=')
		return variable_take(value + 1, out->variables, &out->variable_count);
	if (*i + 1 == argc) {
		fputs("vethguard: error: --var needs NAME=VALUE\n", stderr);
		return false;
	}
	return variable_take(argv[++*i], out->variables, &out->variable_count);
}

int policy_take_options(int argc, char **argv, struct policy_options *out)
{
	bool options = true;
	int n = 0;

	memset(out, 0, sizeof(*out));
	for (int i = 1; i < argc; i++) {
		if (!options || argv[i][0] != '-' || argv[i][1] == '\0') {
			argv[++n] = argv[i];
		} else if (strcmp(argv[i], "--") == 0) {
			options = false;
		} else if (strcmp(argv[i], "--json") == 0) {
			out->json = true;
		} else if (strcmp(argv[i], "--help") == 0 || strcmp(argv[i], "-h") == 0) {
			out->help = true;
		} else if (strcmp(argv[i], "--var") == 0 || strncmp(argv[i], "--var=", 6) == 0) {
			if (!take_variable(argc, argv, &i, out))
				return -1;
		} else {
			fprintf(stderr, "vethguard: error: unknown option \"%s\"\n%s", argv[i],
			        usage);
			return -1;
		}
	}
	if (out->help)
		fputs(usage, stdout);
	else if (n == 0)
		fputs(usage, stderr);
	return n;
}

int policy_load_file(const char *path, const struct policy_options *with, struct policy_loaded *out,
        struct diag_list *diags)
{
	struct policy_reader reader = policy_reader_files(policy_default_preset_dir());
	struct diag_list notes = {.count = 0};
	struct policy_load_options options = {.variables = with->variables,
	        .variable_count = with->variable_count,
	        .notes = with->notes ? with->notes : &notes};
	size_t size;
	int rc;

	if (with->notes) {
		options.unused_rules = true;
		options.each_source = policy_note_source;
		options.each_source_context = with->notes;
	}
	memset(out, 0, sizeof(*out));
	rc = policy_load(&reader, path, &options, &out->image, &size, diags);
	if (rc == 0)
		rc = policy_open(&out->policy, out->image, size);
	if (rc != 0 && diags->count == 0)
		diag_add(diags, path, 0, 0, "cannot load the policy: %s", strerror(-rc));
	if (!with->quiet)
		policy_print_notes(&notes);
	return rc;
}

void policy_print_notes(const struct diag_list *notes)
{
	for (size_t i = 0; i < notes->count; i++) {
		const struct diag *note = &notes->items[i];

		if (note->line)
			fprintf(stderr, "%s:%u:%u: note: %s\n", note->file, note->line,
			        note->column, note->message);
		else
			fprintf(stderr, "%s: note: %s\n", note->file, note->message);
	}
	if (notes->dropped)
		fprintf(stderr, "%zu more notes are not shown\n", notes->dropped);
}

void policy_unload(struct policy_loaded *loaded)
{
	free(loaded->image);
	loaded->image = NULL;
}

void policy_diags_json(struct json *j, const char *key, const struct diag_list *diags)
{
	json_array(j, key);
	for (size_t i = 0; i < diags->count; i++) {
		const struct diag *d = &diags->items[i];

		json_object(j, NULL);
		json_literal(j, "file", d->file);
		json_uint(j, "line", d->line);
		json_uint(j, "column", d->column);
		json_literal(j, "message", d->message);
		json_end_object(j);
	}
	json_end_array(j);
}

int policy_print_json(struct json *j, struct buf *buf, int status)
{
	struct slice text = buf_slice(buf);

	if (j->failed || text.n == 0) {
		fputs("vethguard: error: the answer is too long for JSON\n", stderr);
		status = POLICY_EXIT_BAD;
	} else if (fwrite(text.p, 1, text.n, stdout) != text.n || fputc('\n', stdout) == EOF ||
	           fflush(stdout) == EOF) {
		status = POLICY_EXIT_BAD;
	}
	buf_fini(buf);
	return status;
}
