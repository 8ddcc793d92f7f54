/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Asks on a terminal for what no option has said. A wrong answer gets a message and the question is
 * asked again, a few times. An empty answer means the default.
 */
#include <stdio.h>

#include "cli/policy/new.h"

#define WRONG_ANSWERS_MAX 5
#define LIST_COLUMN 16

/* Reads a line without its end into out. Returns false if none is left or it is too long. */
static bool read_line(char out[NEW_ANSWER_MAX + 1])
{
	size_t n = 0;
	int c;

	while ((c = getchar()) != EOF && c != '\n') {
		if (n == NEW_ANSWER_MAX) {
			fputs("vethguard: error: the answer is too long\n", stderr);
			return false;
		}
		out[n++] = (char)c;
	}
	out[n] = '\0';
	return c != EOF || n > 0;
}

struct question {
	const char *text; /* without the meaning of an empty answer */
	const char *empty;
	bool (*take)(
	        struct new_choice *choice, const struct new_presets *presets, struct slice text);
};

/* Returns false if there was no right answer. */
static bool ask(struct new_choice *choice, const struct new_presets *presets,
        const struct question *question)
{
	char line[NEW_ANSWER_MAX + 1];

	for (int i = 0; i < WRONG_ANSWERS_MAX; i++) {
		fprintf(stderr, "%s [%s]: ", question->text, question->empty);
		fflush(stderr);
		if (!read_line(line))
			return false;
		if (question->take(choice, presets, slice_trim(slice_from_string(line))))
			return true;
	}
	fputs("vethguard: error: too many wrong answers\n", stderr);
	return false;
}

static void list_presets(const struct new_presets *presets, bool keys)
{
	for (size_t i = 0; i < presets->count; i++)
		if (presets->items[i].for_agents == keys && !presets->items[i].fault[0])
			fprintf(stderr, "  %-*s %s\n", LIST_COLUMN, presets->items[i].name,
			        presets->items[i].description);
}

static bool is_none(struct slice text)
{
	return text.n == 0 || slice_equals(text, SLICE("none"));
}

static bool take_agents(
        struct new_choice *choice, const struct new_presets *presets, struct slice text)
{
	return is_none(text) || new_take_presets(&choice->agents, presets, true, "agent", text);
}

static bool take_packages(
        struct new_choice *choice, const struct new_presets *presets, struct slice text)
{
	return is_none(text) ||
	       new_take_presets(&choice->packages, presets, false, "packages", text);
}

static bool take_hosts(
        struct new_choice *choice, const struct new_presets *presets, struct slice text)
{
	(void)presets;
	return is_none(text) || new_take_hosts(&choice->hosts, "host", text);
}

static bool take_name(
        struct new_choice *choice, const struct new_presets *presets, struct slice text)
{
	(void)presets;
	return new_take_name(choice, "name", text.n ? text : SLICE("my-agent"));
}

static bool take_mode(
        struct new_choice *choice, const struct new_presets *presets, struct slice text)
{
	(void)presets;
	return new_take_mode(choice, "mode", text.n ? text : SLICE("enforce"));
}

static bool take_output(
        struct new_choice *choice, const struct new_presets *presets, struct slice text)
{
	char path[POLICY_NAME_MAX + sizeof(".yaml")];

	(void)presets;
	snprintf(path, sizeof(path), "%s.yaml", choice->name);
	return new_take_output(choice, "file", text.n ? text : slice_from_string(path));
}

bool new_ask(struct new_choice *choice, const struct new_presets *presets)
{
	static const struct question agents = {"Agent, or API of a model", "none", take_agents},
	                             packages = {"Packages, public sources, agents without a key",
	                                     "none", take_packages},
	                             hosts = {"Other hosts to read from, such as api.example.com",
	                                     "none", take_hosts},
	                             name = {"Name of the policy", "my-agent", take_name},
	                             mode = {"Mode: enforce, or observe to record only", "enforce",
	                                     take_mode};
	char path[POLICY_NAME_MAX + sizeof(".yaml")];
	struct question output = {"File to write", path, take_output};
	bool good = true;

	fputs("Write several answers in one line, separated by spaces. Return takes what is in "
	      "brackets.\n",
	        stderr);
	if (choice->agents.count == 0) {
		list_presets(presets, true);
		good = ask(choice, presets, &agents);
	}
	if (good && choice->packages.count == 0) {
		list_presets(presets, false);
		good = ask(choice, presets, &packages);
	}
	if (choice->hosts.count == 0)
		good = good && ask(choice, presets, &hosts);
	if (!choice->name[0])
		good = good && ask(choice, presets, &name);
	if (choice->mode == NEW_MODE_UNSAID)
		good = good && ask(choice, presets, &mode);
	snprintf(path, sizeof(path), "%s.yaml", choice->name);
	if (!choice->output[0])
		good = good && ask(choice, presets, &output);
	return good;
}
