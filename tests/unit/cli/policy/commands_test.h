/* SPDX-License-Identifier: Apache-2.0 */
/* `vethguard policy` in a test: runs it, keeps what it prints, and has a policy in a folder of its
 * own. */
#ifndef VETHGUARD_TESTS_UNIT_CLI_POLICY_COMMANDS_TEST_H
#define VETHGUARD_TESTS_UNIT_CLI_POLICY_COMMANDS_TEST_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/policy/policy.h"

#define ARGS_MAX 8
#define OUT_MAX 65536

struct ran {
	int status;
	char out[OUT_MAX], err[OUT_MAX];
};

static inline int redirect(FILE *from, FILE **file)
{
	int saved = dup(fileno(from));

	*file = tmpfile();
	assert_true(saved >= 0 && *file);
	fflush(from);
	assert_true(dup2(fileno(*file), fileno(from)) >= 0);
	return saved;
}

static inline void restore(FILE *from, FILE *file, int saved, char *out)
{
	size_t n;

	fflush(from);
	assert_true(dup2(saved, fileno(from)) >= 0);
	close(saved);
	rewind(file);
	n = fread(out, 1, OUT_MAX - 1, file);
	out[n] = '\0';
	fclose(file);
}

/* Runs "policy" with the arguments; what it writes is kept. */
static inline void run(struct ran *r, const char *const args[])
{
	static char words[ARGS_MAX + 1][256];
	char *argv[ARGS_MAX + 2] = {words[0]};
	FILE *out, *err;
	int argc = 1, saved_out, saved_err;

	strcpy(words[0], "policy");
	for (; args[argc - 1] && argc < ARGS_MAX; argc++) {
		snprintf(words[argc], sizeof(words[argc]), "%s", args[argc - 1]);
		argv[argc] = words[argc];
	}
	saved_out = redirect(stdout, &out);
	saved_err = redirect(stderr, &err);
	r->status = cli_policy(argc, argv);
	restore(stdout, out, saved_out, r->out);
	restore(stderr, err, saved_err, r->err);
}

#define RUN(r, ...) run(r, (const char *const[]){__VA_ARGS__, NULL})

static struct ran r;

#define NOTED "/tmp/vethguard-check-XXXXXX"

/* A folder of its own with policy.yaml, whose path is kept; the folder ends with forget(). */
static char folder[sizeof(NOTED)], policy_path[sizeof(NOTED) + 16], secret_path[sizeof(NOTED) + 16];

static inline void write_file(const char *path, const char *text)
{
	FILE *f = fopen(path, "w");

	assert_non_null(f);
	fputs(text, f);
	assert_int_equal(fclose(f), 0);
}

static inline void remember(const char *text)
{
	strcpy(folder, NOTED);
	assert_non_null(mkdtemp(folder));
	snprintf(policy_path, sizeof(policy_path), "%s/policy.yaml", folder);
	snprintf(secret_path, sizeof(secret_path), "%s/secret", folder);
	write_file(policy_path, text);
}

static inline void forget(void)
{
	unlink(secret_path);
	rmdir(secret_path);
	unlink(policy_path);
	assert_int_equal(rmdir(folder), 0);
}

#endif
