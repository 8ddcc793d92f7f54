/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `vethguard probe`: prints contrib/probe/probe.sh, which is a part of this program, for a shell
 * inside of a sandbox. Options are written into it, so that a pipe is all that is needed. The text
 * of --help is the script's own.
 */
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "cli/commands.h"

#define USAGE_BEGIN "cat <<'END'\n"
#define USAGE_END "END\n"
#define OPTION_MAX 32 /* letters; all of the script's are shorter */

__asm__(".pushsection .rodata\n"
        "probe_script:\n"
        ".incbin \"contrib/probe/probe.sh\"\n"
        ".byte 0\n"
        ".popsection\n");
extern const char probe_script[] __attribute__((visibility("hidden")));

static const char *usage_begin(void)
{
	return strstr(probe_script, USAGE_BEGIN) + strlen(USAGE_BEGIN);
}

static const char *usage_end(void)
{
	return strstr(usage_begin(), "\n" USAGE_END) + 1;
}

/* True if the script's usage has a line for the option. */
static bool is_known(const char *option)
{
	char line[OPTION_MAX + 16];
	const char *found;

	if (strncmp(option, "--", 2) != 0 || strlen(option) > OPTION_MAX)
		return false;
	snprintf(line, sizeof(line), "\n      %s ", option);
	found = strstr(usage_begin(), line);
	return found && found < usage_end();
}

/* Prints 'single quotes', in which only single quotes themselves need care. */
static void print_quoted(const char *word)
{
	putchar('\'');
	for (; *word; word++) {
		if (*word == '\'')
			fputs("'\\''", stdout);
		else
			putchar(*word);
	}
	putchar('\'');
}

int cli_probe(int argc, char **argv)
{
	for (int i = 1; i < argc; i++) {
		if (strcmp(argv[i], "--help") == 0 || strcmp(argv[i], "-h") == 0) {
			fwrite(usage_begin(), 1, (size_t)(usage_end() - usage_begin()), stdout);
			return 0;
		}
		if (argv[i][0] == '-' && !is_known(argv[i])) {
			fprintf(stderr,
			        "vethguard: error: the probe has no option \"%s\"; 'vethguard "
			        "probe --help' shows all\n",
			        argv[i]);
			return CLI_USAGE;
		}
	}
	if (argc > 1) {
		fputs("set --", stdout);
		for (int i = 1; i < argc; i++) {
			putchar(' ');
			print_quoted(argv[i]);
		}
		putchar('\n');
	}
	fputs(probe_script, stdout);
	return 0;
}
