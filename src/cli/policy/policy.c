/* SPDX-License-Identifier: Apache-2.0 */
/* Theory of operation: the parts that the policy commands share (options, loading, JSON on stdout)
 * and the table of commands. */
#include <errno.h>
#include <stdlib.h>

#include "cli/command.h"
#include "cli/policy/policy.h"
#include "cli/variable_option.h"
#include "vethguard/base/options.h"

static const struct command commands[] = {
        {"check", policy_check_command,
                "what is wrong with policies, and what is probably not meant"},
        {"explain", policy_explain_command, "what would happen to a request, and why"},
        {"diff", policy_diff_command, "what a new version makes possible, and what no longer is"},
        {"new", policy_new_command, "write a policy: asks a few questions"},
        {NULL, NULL, NULL},
};

#define VAR                                                                                \
	{                                                                                  \
		"var", 0, "NAME=VALUE", "the value of ${NAME} in the policies; repeatable" \
	}
#define JSON                                      \
	{                                         \
		"json", 'j', NULL, "for programs" \
	}
#define HELP                                   \
	{                                      \
		"help", 'h', NULL, "this text" \
	}

static const struct option_spec common_specs[] = {VAR, JSON, HELP, {NULL, 0, NULL, NULL}};
static const struct option_spec resolving_specs[] = {VAR,
        {"resolve", 0, NULL, "ask this machine's name servers where the hosts lead"},
        {"config", 0, "FILE", "the configuration whose resolver, hosts and permit count"}, JSON,
        HELP, {NULL, 0, NULL, NULL}};

static void usage(FILE *out)
{
	fputs("Usage: vethguard policy check FILE... [OPTIONS]\n"
	      "       vethguard policy explain FILE METHOD URL [OPTIONS]\n"
	      "       vethguard policy diff OLD NEW [OPTIONS]\n"
	      "       vethguard policy new [OPTIONS]\n\n",
	        out);
	command_list(commands, out);
	fputs("\nExit status: 0 right, allowed or the same, 1 denied, different or a name that "
	      "leads "
	      "nowhere,\n2 wrong usage or a policy that does not load. 'vethguard policy check "
	      "--help' tells more.\n",
	        out);
}

int cli_policy(int argc, char **argv)
{
	const struct command *command;

	if (argc < 2) {
		usage(stderr);
		return POLICY_EXIT_BAD;
	}
	if (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0) {
		usage(stdout);
		return POLICY_EXIT_GOOD;
	}
	command = command_find(commands, argv[1]);
	return command ? command->run(argc - 1, argv + 1)
	               : command_unknown(commands, "vethguard policy", argv[1], NULL);
}

static const struct option_spec *specs_of(const struct policy_usage *usage)
{
	return usage->resolves ? resolving_specs : common_specs;
}

static void help(const struct policy_usage *usage)
{
	printf("Usage: %s", usage->command);
	for (size_t i = 0; i < POLICY_WORDS && usage->words[i]; i++)
		printf(" %s", usage->words[i]);
	printf("%s [OPTIONS]\n\n%s\n", usage->more ? "..." : "", usage->text);
	options_print(specs_of(usage), stdout);
	printf("\nExamples:\n%s", usage->examples);
}

static bool take_option(const char *name, const char *value, struct policy_options *out)
{
	if (strcmp(name, "var") == 0)
		return variable_take(value, out->variables, &out->variable_count);
	if (strcmp(name, "json") == 0)
		out->json = true;
	else if (strcmp(name, "resolve") == 0)
		out->resolve = true;
	else if (strcmp(name, "config") == 0)
		out->config = value;
	else
		out->help = true;
	return true;
}

/* Returns true if the number of words is right, else false after a message. */
static bool check_words(const struct policy_usage *usage, char **words, size_t n)
{
	char escaped[128];
	size_t wanted = 0;

	while (wanted < POLICY_WORDS && usage->words[wanted])
		wanted++;
	if (n < wanted)
		fprintf(stderr, "vethguard: error: which %s? See '%s --help'.\n", usage->words[n],
		        usage->command);
	else if (n > wanted && !usage->more)
		fprintf(stderr, "vethguard: error: %s is one word too many. See '%s --help'.\n",
		        slice_escape(slice_from_string(words[wanted]), escaped, sizeof(escaped)),
		        usage->command);
	else
		return true;
	return false;
}

int policy_take_options(const struct policy_usage *usage, char **argv, struct policy_options *out)
{
	struct options o;
	int option, n = 0;

	memset(out, 0, sizeof(*out));
	options_init(&o, usage->command, specs_of(usage), argv + 1);
	for (;;) {
		while ((option = options_next(&o)) >= 0)
			if (!take_option(o.specs[option].name, o.value, out))
				return -1;
		if (option == OPTIONS_WRONG)
			return -1;
		if (!*o.argv)
			break;
		argv[n++] = *o.argv++; /* options may stand between words */
	}
	if (out->help) {
		help(usage);
		return 0;
	}
	return check_words(usage, argv, (size_t)n) ? n : -1;
}

int policy_load_file(const char *path, const struct policy_options *with, struct policy_loaded *out,
        struct diag_list *diags)
{
	struct policy_file_facts facts = {0};
	struct policy_reader reader =
	        policy_reader_watchful_files(policy_default_preset_dir(), &facts);
	struct diag_list notes = {.count = 0};
	struct policy_load_options options = {.variables = with->variables,
	        .variable_count = with->variable_count,
	        .notes = with->notes ? with->notes : &notes};
	size_t size;
	int rc;

	if (with->notes) {
		options.thorough = true;
		options.each_source = policy_note_source;
		options.each_source_context = with->notes;
	}
	if (with->hosts) {
		options.each_host = resolve_add;
		options.each_host_context = with->hosts;
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
