/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Theory of operation: the source is read whole and turned into a policy (policy/import.h). The
 * policy is loaded like any other before it is written, so what is written is valid.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include "cli/policy/policy.h"
#include "vethguard/base/options.h"
#include "vethguard/policy/import.h"

#define MADE_PATH "/imported.yaml"

enum { IMPORT_FROM, IMPORT_OUTPUT, IMPORT_HELP };

static const struct option_spec specs[] = {
        [IMPORT_FROM] = {"from", 0, "FORMAT",
                "e2b, vercel, openshell, srt, docker-sbx or squid; required"},
        [IMPORT_OUTPUT] = {"output", 'o', "FILE", "a new file; default: the standard output"},
        [IMPORT_HELP] = {"help", 'h', NULL, "this text"},
        {NULL, 0, NULL, NULL},
};

static const char command[] = "vethguard policy import";

struct choice {
	enum policy_import_format format;
	const char *from, *file, *output;
};

static void help(void)
{
	printf("Usage: %s --from FORMAT FILE [OPTIONS]\n\n"
	       "Writes a policy that never allows more than the network rules of another program "
	       "do.\nIts comments say what a policy cannot say, or says more narrowly. FILE may be "
	       "- "
	       "for the\nstandard input. Exit status: 0 written, 2 not.\n\n"
	       "  e2b         options of Sandbox.create(), or their network (JSON)\n"
	       "  vercel      a networkPolicy of Vercel Sandbox (JSON)\n"
	       "  openshell   a sandbox policy of NVIDIA OpenShell (YAML)\n"
	       "  srt         settings of Anthropic's sandbox-runtime (JSON)\n"
	       "  docker-sbx  'sbx policy' commands, one a line\n"
	       "  squid       acl and http_access of a squid.conf\n\n",
	        command);
	options_print(specs, stdout);
	printf("\nExamples:\n"
	       "  vethguard policy import --from srt ~/.srt-settings.json\n"
	       "  vethguard policy import --from squid /etc/squid/squid.conf -o agent.yaml\n");
}

static int complain(const char *before, const char *what, const char *why)
{
	char shown[256];

	fprintf(stderr, "vethguard: error: %s%s%s\n", before,
	        slice_escape(slice_from_string(what), shown, sizeof(shown)), why);
	return -1;
}

/* Returns 1; 0 after --help; -1 after a message. */
static int take_options(char **argv, struct choice *choice)
{
	struct options o;
	int option;

	*choice = (struct choice){.output = "-"};
	options_init(&o, command, specs, argv + 1);
	for (;;) {
		while ((option = options_next(&o)) >= 0) {
			if (option == IMPORT_HELP) {
				help();
				return 0;
			}
			*(option == IMPORT_FROM ? &choice->from : &choice->output) = o.value;
		}
		if (option == OPTIONS_WRONG)
			return -1;
		if (!*o.argv)
			break;
		if (choice->file)
			return complain("", *o.argv, " is an unexpected word: one FILE is read");
		choice->file = *o.argv++;
	}
	if (!choice->from)
		return complain("", "--from",
		        " is missing: e2b, vercel, openshell, srt, docker-sbx or squid");
	if (!policy_import_find(choice->from, &choice->format))
		return complain("--from ", choice->from,
		        ": the formats are e2b, vercel, openshell, srt, docker-sbx and squid");
	return choice->file ? 1 : complain("", "FILE", " is missing: what is to be imported?");
}

/* Reads all of the file into *out. Returns false after a message. */
static bool read_source(const char *path, struct buf *out)
{
	bool is_input = strcmp(path, "-") == 0;
	int fd = is_input ? STDIN_FILENO : open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY);
	int fault = errno;
	char why[128];
	ssize_t n = -1;

	while (fd >= 0) {
		uint8_t *room = buf_reserve(out, 65536);

		n = room ? read(fd, room, 65536) : -1;
		fault = room ? errno : EFBIG;
		if (n > 0)
			buf_commit(out, (size_t)n);
		if (n == 0 || (n < 0 && fault != EINTR))
			break;
	}
	if (n != 0) {
		snprintf(why, sizeof(why), ": %s",
		        fault == EFBIG ? "more than 1 MiB" : strerror(fault));
		complain("cannot read ", path, why);
	}
	if (fd >= 0 && !is_input)
		close(fd);
	return n == 0;
}

static int read_made(void *context, const char *path, char **text, size_t *n)
{
	const struct buf *made = context;

	if (strcmp(path, MADE_PATH) != 0)
		return -ENOENT;
	*text = malloc(made->len + 1);
	if (!*text)
		return -ENOMEM;
	memcpy(*text, buf_slice(made).p, made->len);
	(*text)[made->len] = 0;
	*n = made->len;
	return 0;
}

/* Loads what was made. Returns false after messages. */
static bool is_valid(struct buf *made)
{
	const struct policy_reader reader = {.context = made, .read = read_made};
	struct diag_list diags = {.count = 0};
	uint8_t *image = NULL;
	size_t size;
	int rc = policy_load(&reader, MADE_PATH, NULL, &image, &size, &diags);

	free(image);
	if (rc == 0)
		return true;
	fputs("vethguard: error: the rules do not make a valid policy together:\n", stderr);
	diag_print(&diags, stderr);
	return false;
}

static bool make(const struct choice *choice, struct buf *source, struct buf *made)
{
	struct diag_list diags = {.count = 0};
	int rc;

	if (!read_source(choice->file, source))
		return false;
	rc = policy_import(choice->format, choice->file, buf_slice(source), made, &diags);
	if (rc == -ENOMEM)
		complain("", choice->file, ": not enough memory, or too many rules");
	if (rc != 0)
		diag_print(&diags, stderr);
	return rc == 0 && is_valid(made) && policy_write(choice->output, buf_slice(made));
}

int policy_import_command(int argc, char **argv)
{
	struct choice choice;
	struct buf source, made;
	int n = take_options(argv, &choice);
	bool good;

	(void)argc;
	if (n <= 0)
		return n == 0 ? POLICY_EXIT_GOOD : POLICY_EXIT_BAD;
	buf_init(&source, POLICY_IMPORT_FILE_MAX + 65536);
	buf_init(&made, POLICY_IMPORT_TEXT_MAX);
	good = make(&choice, &source, &made);
	buf_fini(&source);
	buf_fini(&made);
	return good ? POLICY_EXIT_GOOD : POLICY_EXIT_BAD;
}
