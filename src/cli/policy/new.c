/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Theory of operation: options are taken first. Unless they say enough, the rest is asked for on a
 * terminal. The text is made, loaded like any policy, and only then written, into a new file.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "cli/policy/policy.h"
#include "cli/policy/new.h"
#include "vethguard/base/options.h"

enum { NEW_AGENT, NEW_PACKAGES, NEW_HOST, NEW_NAME, NEW_MODE, NEW_OUTPUT, NEW_HELP };

static const struct option_spec specs[] = {
        [NEW_AGENT] = {"agent", 'a', "PRESET", "preset of an agent or a model's API; repeatable"},
        [NEW_PACKAGES] = {"packages", 'p', "PRESET",
                "preset of packages or public sources; repeatable"},
        [NEW_HOST] = {"host", 'H', "HOST",
                "another destination: api.example.com, tcp://db.example.com:5432;\nrepeatable"},
        [NEW_NAME] = {"name", 'n', "NAME", "the policy's name; default: the file's name"},
        [NEW_MODE] = {"mode", 'm', "MODE", "enforce (the default) or observe"},
        [NEW_OUTPUT] = {"output", 'o', "FILE", "the file to write; - is the standard output"},
        [NEW_HELP] = {"help", 'h', NULL, "this text"},
        {NULL, 0, NULL, NULL},
};

static const char command[] = "vethguard policy new";

static void list_known(const struct new_presets *presets, bool keys, const char *title)
{
	const char *names[POLICY_PRESETS_MAX + 1];
	char list[1024];
	size_t n = new_presets_names(presets, keys, names);

	printf("%s: %s\n", title, n ? diag_words(names, "and", list, sizeof(list)) : "none");
}

static void help(const struct new_presets *presets)
{
	printf("Usage: %s [OPTIONS]\n\n"
	       "Writes a policy with comments. On a terminal it asks for what the options leave "
	       "open;\nwith --output and one of --agent, --packages and --host it asks nothing. It "
	       "never\noverwrites a file. Exit status: 0 written, 2 not.\n\n",
	        command);
	options_print(specs, stdout);
	printf("\n");
	list_known(presets, true, "Agents and APIs");
	list_known(presets, false, "Packages");
	printf("\nExamples:\n"
	       "  vethguard policy new\n"
	       "  vethguard policy new --agent anthropic --packages pypi,npm --host "
	       "docs.example.com -o agent.yaml\n");
}

/* Returns 1; 0 after --help; -1 after a message. */
static int take_options(char **argv, const struct new_presets *presets, struct new_choice *choice)
{
	struct options o;
	char escaped[128];
	bool good = true;
	int option;

	options_init(&o, command, specs, argv);
	while (good && (option = options_next(&o)) >= 0) {
		struct slice value = slice_from_string(o.value);

		if (option == NEW_HELP) {
			help(presets);
			return 0;
		}
		good = option == NEW_AGENT
		               ? new_take_presets(&choice->agents, presets, true, "--agent", value)
		       : option == NEW_PACKAGES ? new_take_presets(&choice->packages, presets,
		                                          false, "--packages", value)
		       : option == NEW_HOST     ? new_take_hosts(&choice->hosts, "--host", value)
		       : option == NEW_NAME     ? new_take_name(choice, "--name", value)
		       : option == NEW_MODE     ? new_take_mode(choice, "--mode", value)
		                                : new_take_output(choice, "--output", value);
	}
	if (!good || option == OPTIONS_WRONG)
		return -1;
	if (!*o.argv)
		return 1;
	fprintf(stderr,
	        "vethguard: error: %s is an unexpected word; name the file with --output. "
	        "See '%s --help'.\n",
	        slice_escape(slice_from_string(*o.argv), escaped, sizeof(escaped)), command);
	return -1;
}

static bool has_content(const struct new_choice *choice)
{
	return choice->agents.count + choice->packages.count + choice->hosts.count > 0;
}

static bool is_on_terminal(void)
{
	return isatty(STDIN_FILENO) && isatty(STDERR_FILENO);
}

static void say_what_is_missing(const struct new_choice *choice)
{
	fprintf(stderr,
	        "vethguard: error: there is no terminal to ask on; say%s%s%s. See '%s --help'.\n",
	        choice->output[0] ? "" : " --output FILE",
	        choice->output[0] || has_content(choice) ? "" : " and",
	        has_content(choice) ? "" : " one of --agent, --packages and --host", command);
}

/* Takes the file's name without directory and ending, if that is a valid name. */
static void default_name(struct new_choice *choice)
{
	const char *base = strrchr(choice->output, '/');
	struct slice name = slice_from_string(base ? base + 1 : choice->output);
	bool plain = true;

	if (choice->name[0])
		return;
	if (slice_ends_with(name, SLICE(".yaml")))
		name.n -= strlen(".yaml");
	for (size_t i = 0; i < name.n; i++) {
		char c = name.p[i];

		plain = plain && ((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
		                         (c >= '0' && c <= '9') || (i > 0 && strchr("._-", c)));
	}
	if (!plain || name.n == 0 || name.n > POLICY_NAME_MAX)
		name = SLICE("my-agent");
	snprintf(choice->name, sizeof(choice->name), "%.*s", SLICE_ARG(name));
}

static bool write_policy(const struct new_choice *choice, struct slice text)
{
	char shown[512];

	if (!policy_write(choice->output, text))
		return false;
	if (strcmp(choice->output, "-") == 0)
		return true;
	slice_escape(slice_from_string(choice->output), shown, sizeof(shown));
	printf("%s is written. What it decides: vethguard policy explain %s GET https://HOST/\n"
	       "Use it: vethguard run --policy %s -- COMMAND\n",
	        shown, shown, shown);
	return true;
}

static bool make(struct new_choice *choice, const struct new_presets *presets)
{
	bool asks = !choice->output[0] || !has_content(choice), good = true;
	struct buf text;

	if (asks && !is_on_terminal()) {
		say_what_is_missing(choice);
		return false;
	}
	if (asks && !new_ask(choice, presets)) {
		fputs("\nNothing was written.\n", stderr);
		return false;
	}
	default_name(choice);
	buf_init(&text, NEW_TEXT_MAX);
	good = new_text(choice, presets, &text) && write_policy(choice, buf_slice(&text));
	buf_fini(&text);
	return good;
}

int policy_new_command(int argc, char **argv)
{
	static struct new_choice choice;
	struct new_presets presets;
	int status = POLICY_EXIT_BAD, taken;

	(void)argc;
	memset(&choice, 0, sizeof(choice));
	if (!new_presets_find(&presets)) {
		fputs("vethguard: error: not enough memory\n", stderr);
		return status;
	}
	taken = take_options(argv + 1, &presets, &choice);
	if (taken == 0 || (taken > 0 && make(&choice, &presets)))
		status = POLICY_EXIT_GOOD;
	new_presets_free(&presets);
	return status;
}
