/* SPDX-License-Identifier: Apache-2.0 */
/* Options from a table; see options.h. Not getopt_long(): its messages cannot suggest, and it
 * reorders words that belong to the guarded command. */
#include <string.h>

#include "vethguard/base/options.h"
#include "vethguard/base/diag.h"

#define ESCAPED_MAX 128

void options_init(
        struct options *o, const char *command, const struct option_spec *specs, char **argv)
{
	*o = (struct options){.specs = specs, .command = command, .argv = argv};
}

/* "program: error: ". */
static void begin_message(const struct options *o)
{
	fprintf(stderr, "%.*s: error: ", (int)strcspn(o->command, " "), o->command);
}

static void options_unknown(const struct options *o, struct slice name, const char *dashes)
{
	const char *names[OPTIONS_TABLE_MAX + 1], *near;
	char escaped[ESCAPED_MAX];
	size_t n = 0, length = 0;

	for (; n < OPTIONS_TABLE_MAX && o->specs[n].name; n++) {
		names[n] = o->specs[n].name;
		length += strlen(names[n]) + 4; /* ", --" */
	}
	names[n] = NULL;
	near = diag_nearest(name, names);
	slice_escape(name, escaped, sizeof(escaped));
	begin_message(o);
	fprintf(stderr, "unknown option %s%s", dashes, escaped);
	if (near)
		fprintf(stderr, "; did you mean --%s?", near);
	fputc('\n', stderr);
	for (size_t i = 0; i < n && length <= DIAG_WORDS_SHORT; i++)
		fprintf(stderr, "%s--%s%s",
		        i == 0      ? "The options are "
		        : i + 1 < n ? ", "
		                    : " and ",
		        names[i], i + 1 < n ? "" : ". ");
	fprintf(stderr, "See '%s --help'.\n", o->command);
}

static int options_need_value(struct options *o, int i)
{
	if (!*o->argv) {
		begin_message(o);
		fprintf(stderr, "option --%s needs a value: --%s %s\nSee '%s --help'.\n",
		        o->specs[i].name, o->specs[i].name, o->specs[i].argument, o->command);
		return OPTIONS_WRONG;
	}
	o->value = *o->argv++;
	return i;
}

static int options_long(struct options *o, char *word)
{
	char *equals = strchr(word, '=');
	struct slice name = slice_of(word, equals ? (size_t)(equals - word) : strlen(word));

	for (int i = 0; o->specs[i].name; i++) {
		if (!slice_equals(name, slice_from_string(o->specs[i].name)))
			continue;
		o->value = equals ? equals + 1 : NULL;
		if (!o->specs[i].argument && equals) {
			begin_message(o);
			fprintf(stderr, "option --%s takes no value\n", o->specs[i].name);
			return OPTIONS_WRONG;
		}
		return !o->specs[i].argument || equals ? i : options_need_value(o, i);
	}
	options_unknown(o, name, "--");
	return OPTIONS_WRONG;
}

static int options_short(struct options *o)
{
	char letter = *o->letters++;

	for (int i = 0; o->specs[i].name; i++) {
		if (o->specs[i].letter != letter)
			continue;
		if (!o->specs[i].argument)
			return i;
		if (*o->letters != '\0') {
			o->value = (char *)o->letters;
			o->letters = NULL;
			return i;
		}
		return options_need_value(o, i);
	}
	options_unknown(o, slice_of(&letter, 1), "-");
	return OPTIONS_WRONG;
}

int options_next(struct options *o)
{
	char *word;

	if (o->letters && *o->letters != '\0')
		return options_short(o);
	word = *o->argv;
	if (o->ended || !word || word[0] != '-' || word[1] == '\0')
		return OPTIONS_END;
	o->argv++;
	if (word[1] != '-') {
		o->letters = word + 1;
		return options_short(o);
	}
	o->ended = word[2] == '\0';
	return o->ended ? OPTIONS_END : options_long(o, word + 2);
}

#define HELP_COLUMN 26

void options_print(const struct option_spec *specs, FILE *out)
{
	for (; specs->name; specs++) {
		const char *help = specs->help;
		int n = specs->letter ? fprintf(out, "  -%c, --%s", specs->letter, specs->name)
		                      : fprintf(out, "      --%s", specs->name);

		if (specs->argument)
			n += fprintf(out, " %s", specs->argument);
		fprintf(out, "%*s", n < HELP_COLUMN - 1 ? HELP_COLUMN - n : 2, "");
		for (; *help != '\0'; help++) {
			fputc(*help, out);
			if (*help == '\n')
				fprintf(out, "%*s", HELP_COLUMN, "");
		}
		fputc('\n', out);
	}
}
