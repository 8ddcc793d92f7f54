/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the supervisor said before it ended, although it had not been asked anything yet: on a busy
 * machine a part of it may have died, and the run with it, before START is sent.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "cli/failure.h"
#include "cli/run/supervisor.h"
#include "vethguard/wire/message.h"

#define WHY "the keeper died (signal 31)"

static struct run_supervisor supervisor;
static struct failure failure;

/* unread: it has not taken all of what it was sent. says: the reason, or NULL. */
static void supervisor_ends(bool unread, const char *says)
{
	uint8_t message[128];
	int pair[2];
	size_t n;

	assert_int_equal(ipc_pair(pair), 0);
	supervisor = (struct run_supervisor){.pid = -1, .pidfd = -1, .control = pair[0]};
	supervisor.buffer = malloc(MESSAGE_BYTES_MAX);
	assert_non_null(supervisor.buffer);
	failure = (struct failure){0};
	n = message_empty(message, sizeof(message), MESSAGE_RUN_ROLES, 9);
	if (unread)
		assert_int_equal(ipc_send_blocking(pair[0], message, n, NULL, 0), 0);
	if (says) {
		const struct message_text text = {slice_from_string(says)};

		n = message_text_encode(message, sizeof(message), MESSAGE_FAILED, 0, &text);
		assert_int_equal(ipc_send_blocking(pair[1], message, n, NULL, 0), 0);
	}
	close(pair[1]);
}

static int start(void)
{
	static const struct run_options options;
	static const struct privilege privilege;
	struct message_run_ready ready;
	int netns = dup(STDERR_FILENO);
	int rc = run_supervisor_start(&supervisor, &options, &privilege, netns, &ready, &failure);

	close(netns);
	return rc;
}

static void its_reason_is_shown(void **state)
{
	(void)state;
	for (int unread = 0; unread < 2; unread++) {
		supervisor_ends(unread, WHY);
		assert_int_equal(start(), -ECANCELED);
		assert_string_equal(failure.text, WHY);
		assert_true(run_supervisor_print_refusal(&supervisor));
		run_supervisor_close(&supervisor);
	}
}

static void also_while_the_command_runs_and_at_its_end(void **state)
{
	struct message_summary summary;

	(void)state;
	for (int unread = 0; unread < 2; unread++) {
		supervisor_ends(unread, WHY);
		run_supervisor_broken(&supervisor, &failure);
		assert_string_equal(failure.text, WHY);
		run_supervisor_close(&supervisor);
		supervisor_ends(unread, WHY);
		assert_int_equal(
		        run_supervisor_end(&supervisor, 0, &summary, &failure), -ECANCELED);
		assert_string_equal(failure.text, WHY);
		run_supervisor_close(&supervisor);
	}
}

static void one_that_says_nothing(void **state)
{
	(void)state;
	for (int unread = 0; unread < 2; unread++) {
		supervisor_ends(unread, NULL);
		assert_int_not_equal(start(), 0);
		assert_string_equal(failure.text,
		        "the supervisor vethguardd ended without saying why: run "
		        "again with -vv to see what it did last");
		assert_false(run_supervisor_print_refusal(&supervisor));
		run_supervisor_close(&supervisor);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(its_reason_is_shown),
	        cmocka_unit_test(also_while_the_command_runs_and_at_its_end),
	        cmocka_unit_test(one_that_says_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
