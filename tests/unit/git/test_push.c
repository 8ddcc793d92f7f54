/* SPDX-License-Identifier: Apache-2.0 */
/* Bodies of pushes: what is read of them, what the pack proves, and what is refused. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "git_test.h"

#define MAIN "refs/heads/main"
#define EMPTY_PACK             \
	"PACK\0\0\0\2\0\0\0\0" \
	"01234567890123456789"

static void add_empty_pack(struct git_test *t)
{
	git_test_add(t, EMPTY_PACK, sizeof(EMPTY_PACK) - 1);
}

static void read_it(const struct git_test *t, struct policy_body *body)
{
	git_test_read(body, git_test_push, slice_of(t->text, t->n));
}

/* Checks that the body is refused, with a fault that holds the text. */
static void refused(const struct git_test *t, const char *why)
{
	struct policy_body body;

	read_it(t, &body);
	if (body.kind != POLICY_BODY_OTHER || !body.fault || !strstr(body.fault, why))
		fail_msg("kind %d, fault %s, not \"%s\"", (int)body.kind,
		        body.fault ? body.fault : "none", why);
	policy_body_fini(&body);
}

static void test_commands(void **state)
{
	struct git_test *t = git_test_new();
	struct policy_body body;
	const struct policy_git_command *c;

	(void)state;
	git_test_line(t, "shallow " ID_A "\n");
	git_test_line(t, ZERO " " ID_A " refs/heads/a|" CAPS "\n");
	git_test_line(t, ID_A " " ID_B " refs/heads/b\n");
	git_test_line(t, ID_A " " ID_A " refs/heads/c");
	git_test_line(t, ID_A " " ZERO " refs/tags/v1");
	git_test_raw(t, "0000");
	add_empty_pack(t);
	read_it(t, &body);
	assert_int_equal(body.kind, POLICY_BODY_GIT_PUSH);
	assert_int_equal(body.git->command_count, 4);
	c = body.git->commands;
	assert_true(slice_equals(c[0].ref, SLICE("refs/heads/a")));
	assert_int_equal(c[0].change, POLICY_GIT_CREATES);
	assert_int_equal(c[1].change, POLICY_GIT_UPDATES);
	assert_int_equal(c[1].from[0], 0xaa);
	assert_int_equal(c[1].to[19], 0xbb);
	assert_int_equal(c[2].change, POLICY_GIT_KEEPS);
	assert_int_equal(c[3].change, POLICY_GIT_DELETES);
	assert_true(slice_equals(c[3].ref, SLICE("refs/tags/v1")));
	assert_true(body.git->reports && body.git->bands);
	policy_body_fini(&body);
	free(t);
}

/* A body that only asks, one that only deletes, and options. */
static void test_other_forms(void **state)
{
	struct git_test *t = git_test_new();
	struct policy_body body;

	(void)state;
	git_test_raw(t, "0000");
	read_it(t, &body);
	assert_int_equal(body.kind, POLICY_BODY_GIT_PUSH);
	assert_int_equal(body.git->command_count, 0);
	policy_body_fini(&body);

	t->n = 0;
	git_test_line(t, ID_A " " ZERO " " MAIN "| delete-refs");
	git_test_raw(t, "0000");
	read_it(t, &body);
	assert_int_equal(body.kind, POLICY_BODY_GIT_PUSH);
	policy_body_fini(&body);

	t->n = 0;
	git_test_line(t, ZERO " " ID_A " " MAIN "| push-options atomic");
	git_test_raw(t, "0000");
	git_test_line(t, "ci.skip\n");
	git_test_line(t, "merge_request.create");
	git_test_raw(t, "0000");
	add_empty_pack(t);
	read_it(t, &body);
	assert_int_equal(body.kind, POLICY_BODY_GIT_PUSH);
	assert_int_equal(body.git->option_count, 2);
	assert_true(slice_equals(body.git->options[0], SLICE("ci.skip")));
	policy_body_fini(&body);
	free(t);
}

#define HEX64 ID_A "aaaaaaaaaaaaaaaaaaaaaaaa"
#define ZERO64 ZERO "000000000000000000000000"

static void test_sha256(void **state)
{
	struct git_test *t = git_test_new();
	struct policy_body body;

	(void)state;
	git_test_line(t, ZERO64 " " HEX64 " " MAIN "| object-format=sha256");
	git_test_raw(t, "0000");
	add_empty_pack(t);
	read_it(t, &body);
	assert_int_equal(body.kind, POLICY_BODY_GIT_PUSH);
	assert_int_equal(body.git->commands[0].to[31], 0xaa);
	policy_body_fini(&body);
	free(t);
}

static void test_bad_commands(void **state)
{
	static const char *const lines[] = {"x", ZERO " " ID_A " " MAIN, ZERO " " ID_A " main|",
	        ZERO " " ID_A " HEAD|", ZERO " " ID_A " refs/heads|", ZERO " " ID_A " refs/heads/|",
	        ZERO " " ID_A " refs//x|", ZERO " " ID_A " refs/heads/a..b|",
	        ZERO " " ID_A " refs/heads/../main|", ZERO " " ID_A " refs/heads/.a|",
	        ZERO " " ID_A " refs/heads/a.lock|", ZERO " " ID_A " refs/heads/a.lock/b|",
	        ZERO " " ID_A " refs/heads/a.|", ZERO " " ID_A " refs/heads/a b|",
	        ZERO " " ID_A " refs/heads/a~1|", ZERO " " ID_A " refs/heads/a*|",
	        ZERO " " ID_A " refs/heads/a\\b|", ZERO " " ID_A " refs/heads/a@{b|",
	        ZERO " " ID_A " refs/heads/a\tb|", ZERO " " ID_A " refs/heads/a\nb|",
	        ZERO " " ID_A "  " MAIN "|", ZERO "  " ID_A " " MAIN "|",
	        " " ZERO " " ID_A " " MAIN "|", ZERO " " ZERO " " MAIN "|",
	        ZERO "0 " ID_A " " MAIN "|",
	        "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA " ID_A " " MAIN "|",
	        ZERO " " HEX64 " " MAIN "|", ZERO64 " " HEX64 " " MAIN "|",
	        ZERO64 " " HEX64 " " MAIN "| object-format=sha1",
	        ZERO " " ID_A " " MAIN "| object-format=sha256",
	        ZERO " " ID_A " " MAIN "| object-format=sha1 object-format=sha1",
	        ZERO " " ID_A " " MAIN "| object-format=md5",
	        ZERO " " ID_A " " MAIN "| new-capability",
	        ZERO " " ID_A " " MAIN "| report-status|agent=x",
	        ZERO " " ID_A " " MAIN "| agent=a\x01", NULL};
	struct git_test *t = git_test_new();

	(void)state;
	for (size_t i = 0; lines[i]; i++) {
		if (i == 1) /* sound, without capabilities */
			continue;
		t->n = 0;
		git_test_line(t, lines[i]);
		git_test_raw(t, "0000");
		add_empty_pack(t);
		refused(t, "the push ");
	}
	free(t);
}

static void test_bad_lines(void **state)
{
	static const char *const bodies[] = {"", "0", "000", "00zz", "0000x", "0001", "0002",
	        "0003", "0004", "0005", "fff5x", "00000000", "0006x\n0000", NULL};
	struct git_test *t = git_test_new();

	(void)state;
	for (size_t i = 0; bodies[i]; i++) {
		t->n = 0;
		git_test_raw(t, bodies[i]);
		refused(t, "the push ");
	}
	/* no flush behind the commands; nothing behind it; no pack; a pack of another version */
	t->n = 0;
	git_test_line(t, ZERO " " ID_A " " MAIN "|");
	refused(t, "lines");
	git_test_raw(t, "0000");
	refused(t, "lacks its pack");
	git_test_raw(t, "PACK");
	refused(t, "lacks its pack");
	t->n -= 4;
	git_test_add(t, "PACK\0\0\0\4\0\0\0\0", 12);
	refused(t, "lacks its pack");
	/* a delete has no pack */
	t->n = 0;
	git_test_line(t, ID_A " " ZERO " " MAIN "|");
	git_test_raw(t, "0000");
	add_empty_pack(t);
	refused(t, "behind its end");
	/* a line with capabilities again, and "shallow" behind a command */
	t->n = 0;
	git_test_line(t, ZERO " " ID_A " " MAIN "|");
	git_test_line(t, ZERO " " ID_A " refs/heads/x| push-options");
	git_test_raw(t, "0000");
	add_empty_pack(t);
	refused(t, "no command of git");
	t->n = 0;
	git_test_line(t, ZERO " " ID_A " " MAIN "|");
	git_test_line(t, "shallow " ID_A);
	git_test_raw(t, "0000");
	add_empty_pack(t);
	refused(t, "no command of git");
	t->n = 0;
	git_test_line(t, "shallow aa");
	git_test_raw(t, "0000");
	refused(t, "no command of git");
	free(t);
}

static void test_bounds(void **state)
{
	struct git_test *t = git_test_new();
	char line[GIT_REF_MAX + 200], name[GIT_REF_MAX + 2];
	struct policy_body body;

	(void)state;
	for (unsigned i = 0; i <= GIT_COMMANDS_MAX; i++) {
		snprintf(line, sizeof(line), "%s %s refs/heads/b%u%s", ZERO, ID_A, i, i ? "" : "|");
		if (i == GIT_COMMANDS_MAX) { /* so many pass */
			struct git_test *whole = git_test_new();

			memcpy(whole, t, sizeof(*t));
			git_test_raw(whole, "0000");
			add_empty_pack(whole);
			read_it(whole, &body);
			assert_int_equal(body.kind, POLICY_BODY_GIT_PUSH);
			policy_body_fini(&body);
			free(whole);
		}
		git_test_line(t, line);
	}
	git_test_raw(t, "0000");
	add_empty_pack(t);
	refused(t, "too many");

	t->n = 0;
	for (unsigned i = 0; i <= GIT_SHALLOW_MAX; i++)
		git_test_line(t, "shallow " ID_A);
	git_test_raw(t, "0000");
	refused(t, "too many");

	t->n = 0;
	git_test_line(t, ZERO " " ID_A " " MAIN "| push-options");
	git_test_raw(t, "0000");
	for (unsigned i = 0; i <= GIT_OPTIONS_MAX; i++)
		git_test_line(t, "x");
	git_test_raw(t, "0000");
	add_empty_pack(t);
	refused(t, "too many");

	memset(name, 'x', sizeof(name));
	memcpy(name, "refs/heads/", 11);
	name[GIT_REF_MAX + 1] = '\0';
	for (int i = 0; i < 2; i++) {
		t->n = 0;
		snprintf(line, sizeof(line), "%s %s %s|", ZERO, ID_A, name);
		git_test_line(t, line);
		git_test_raw(t, "0000");
		add_empty_pack(t);
		if (i) {
			read_it(t, &body);
			assert_int_equal(body.kind, POLICY_BODY_GIT_PUSH);
			policy_body_fini(&body);
		} else {
			refused(t, "no command of git");
		}
		name[GIT_REF_MAX] = '\0';
	}
	free(t);
}

/* --- certificates --- */

static void add_certificate(struct git_test *t, const char *const lines[])
{
	t->n = 0;
	git_test_line(t, "push-cert|" CAPS);
	for (size_t i = 0; lines[i]; i++)
		git_test_line(t, lines[i]);
	git_test_raw(t, "0000");
	add_empty_pack(t);
}

#define HEADERS "certificate version 0.1\n", "pusher A <a@x> 1 +0000\n", "nonce x\n"
#define COMMAND ID_A " " ID_B " " MAIN "\n"
#define SIGNED "-----BEGIN PGP SIGNATURE-----\n"

static void test_certificate(void **state)
{
	static const char *const good[] = {HEADERS, "\n", COMMAND, SIGNED, "abc\n",
	        "-----END PGP SIGNATURE-----\n", "push-cert-end\n", NULL};
	struct git_test *t = git_test_new();
	struct policy_body body;

	(void)state;
	add_certificate(t, good);
	read_it(t, &body);
	assert_int_equal(body.kind, POLICY_BODY_GIT_PUSH);
	assert_int_equal(body.git->command_count, 1);
	assert_true(slice_equals(body.git->commands[0].ref, SLICE(MAIN)));
	assert_int_equal(body.git->commands[0].change, POLICY_GIT_UPDATES);
	policy_body_fini(&body);
	free(t);
}

static void test_bad_certificates(void **state)
{
	static const char *const bad[][10] = {
	        {HEADERS, "\n", COMMAND, SIGNED, "x\n"},
	        {HEADERS, "\n", COMMAND, "push-cert-end\n"},
	        {HEADERS, COMMAND, SIGNED, "push-cert-end\n"},
	        {HEADERS, "other x\n", "\n", COMMAND, SIGNED, "push-cert-end\n"},
	        {HEADERS, "\n", COMMAND, SIGNED, SIGNED, "push-cert-end\n"},
	        {HEADERS, "\n", COMMAND, "\n", SIGNED, "push-cert-end\n"},
	        {HEADERS, "\n", COMMAND COMMAND, SIGNED, "push-cert-end\n"},
	        {HEADERS, "\n", ID_A " " ID_B " " MAIN, SIGNED, "push-cert-end\n"},
	        {HEADERS, "\n", COMMAND, SIGNED, "push-cert-end\n", COMMAND},
	        {HEADERS, "\n", COMMAND, SIGNED, "push-cert-end"},
	        {"push-cert-end\n"},
	};
	struct git_test *t = git_test_new();

	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
		add_certificate(t, bad[i]);
		refused(t, "the push ");
	}
	t->n = 0;
	git_test_line(t, "push-cert|" CAPS);
	for (unsigned i = 0; i <= GIT_CERTIFICATE_LINES_MAX; i++)
		git_test_line(t, "nonce x\n");
	refused(t, "too many");
	free(t);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(test_commands),
	        cmocka_unit_test(test_other_forms),
	        cmocka_unit_test(test_sha256),
	        cmocka_unit_test(test_bad_commands),
	        cmocka_unit_test(test_bad_lines),
	        cmocka_unit_test(test_bounds),
	        cmocka_unit_test(test_certificate),
	        cmocka_unit_test(test_bad_certificates),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
