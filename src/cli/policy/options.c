/* SPDX-License-Identifier: Apache-2.0 */
/* The options and words that the policy commands share. */
#include "cli/policy/policy.h"
#include "cli/variable_option.h"
#include "vethguard/base/options.h"

#define VAR                                                                                \
	{                                                                                  \
		"var", 0, "NAME=VALUE", "the value of ${NAME} in the policies; repeatable" \
	}
#define JSON                                                  \
	{                                                     \
		"json", 'j', NULL, "print JSON, for programs" \
	}
#define HELP                                   \
	{                                      \
		"help", 'h', NULL, "this text" \
	}

#define FLOOR                                                                                 \
	{                                                                                     \
		"floor", 0, "FILE",                                                           \
		        "the floor that bounds the policies (" POLICY_FLOOR_PATH "); or none" \
	}

static const struct option_spec common_specs[] = {VAR, FLOOR, JSON, HELP, {NULL, 0, NULL, NULL}};
#define RESOLVE                                                                                 \
	{"resolve", 0, NULL, "ask this machine's name servers where the hosts lead"},           \
	{                                                                                       \
		"config", 0, "FILE", "the configuration whose resolver, hosts and permit count" \
	}
static const struct option_spec resolving_specs[] = {
        VAR, FLOOR, RESOLVE, JSON, HELP, {NULL, 0, NULL, NULL}};

static const struct option_spec asking_specs[] = {VAR,
        {"header", 'H', "FIELD",
                "\"Name: value\" of the request, for rules with headers; repeatable"},
        {"body", 0, "FILE", "the request's body, for rules with json or form; - is standard input"},
        FLOOR, RESOLVE, JSON, HELP, {NULL, 0, NULL, NULL}};

static const struct option_spec *specs_of(const struct policy_usage *usage)
{
	return usage->asks ? asking_specs : usage->resolves ? resolving_specs : common_specs;
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

/* Takes "Name: value". Returns false after a message. */
static bool take_header(const char *value, struct policy_options *out)
{
	struct slice text = slice_from_string(value);
	ptrdiff_t colon = slice_find_byte(text, ':');
	struct policy_field *field = &out->headers[out->header_count];
	char escaped[128];

	if (out->header_count == POLICY_HEADERS_MAX) {
		fprintf(stderr, "vethguard: error: more than %d times --header\n",
		        POLICY_HEADERS_MAX);
		return false;
	}
	if (colon > 0) {
		field->name = slice_of(text.p, (size_t)colon);
		field->value = slice_trim(slice_of(text.p + colon + 1, text.n - (size_t)colon - 1));
	}
	if (colon <= 0 || slice_token_length(field->name) != field->name.n) {
		fprintf(stderr, "vethguard: error: --header %s: write a field as \"Name: value\"\n",
		        slice_escape(text, escaped, sizeof(escaped)));
		return false;
	}
	out->header_count++;
	return true;
}

static bool take_option(const char *name, const char *value, struct policy_options *out)
{
	if (strcmp(name, "var") == 0)
		return variable_take(value, out->variables, &out->variable_count);
	if (strcmp(name, "header") == 0)
		return take_header(value, out);
	if (strcmp(name, "json") == 0)
		out->json = true;
	else if (strcmp(name, "body") == 0)
		out->body = value;
	else if (strcmp(name, "resolve") == 0)
		out->resolve = true;
	else if (strcmp(name, "config") == 0)
		out->config = value;
	else if (strcmp(name, "floor") == 0)
		out->floor = value;
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
		fprintf(stderr, "vethguard: error: %s is an unexpected word. See '%s --help'.\n",
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
