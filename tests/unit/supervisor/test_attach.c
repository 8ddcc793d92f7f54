/* SPDX-License-Identifier: Apache-2.0 */
/* Bounds of the daemon's registry: as many sandboxes as there may be, and as many operations on one
 * of them; the next is refused and changes nothing. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "supervisor/attachment.h"

static struct supervisor supervisor;
static struct attachments all;

static struct {
	unsigned count;
	enum attach_status status;
	char text[256];
} answered;

static void on_done(void *context, const struct attach_result *result)
{
	(void)context;
	answered.count++;
	answered.status = result->status;
	snprintf(answered.text, sizeof answered.text, "%s", result->text);
}

static int set_up(void **state)
{
	(void)state;
	memset(&answered, 0, sizeof answered);
	supervisor = (struct supervisor){.loop = loop_new()};
	all = (struct attachments){.supervisor = &supervisor};
	return supervisor.loop ? 0 : -1;
}

static int tear_down(void **state)
{
	struct attachment *a, *next;

	(void)state;
	HASH_ITER(hh, all.by_name, a, next)
	attachment_free(a);
	loop_free(supervisor.loop);
	return 0;
}

static void enter(unsigned number)
{
	struct attachment *a = attachment_new(&all);

	assert_non_null(a);
	snprintf(a->record.name, sizeof a->record.name, "box-%u", number);
	assert_int_equal(attachment_enter(a), 0);
}

/* Of a namespace that is not there: whoever gets so far is told of that. */
static void attach(const char *name)
{
	const struct attach_request request = {.name = name,
	        .kind = ATTACH_NETNS,
	        .netns = "/nowhere/at-all",
	        .policy = "/nowhere/policy.yaml",
	        .caller = {.uid = getuid(), .gid = getgid(), .fixed = getuid() != 0}};

	attachments_attach(&all, &request, on_done, NULL);
}

static void one_more_than_there_may_be(void **state)
{
	(void)state;
	for (unsigned i = 0; i < ATTACHMENTS_MAX - 1; i++)
		enter(i);
	attach("last");
	assert_int_equal(answered.count, 1);
	assert_int_equal(answered.status, ATTACH_INVALID);
	assert_non_null(strstr(answered.text, "/nowhere/at-all"));
	assert_int_equal(attachments_count(&all), ATTACHMENTS_MAX - 1);
	enter(ATTACHMENTS_MAX);
	attach("beyond");
	assert_int_equal(answered.count, 2);
	assert_int_equal(answered.status, ATTACH_BUSY);
	assert_string_equal(answered.text, "there are 2000 sandboxes already");
	assert_int_equal(attachments_count(&all), ATTACHMENTS_MAX);
	assert_null(attachments_find(&all, "beyond"));
}

static void one_operation_more_than_may_wait(void **state)
{
	const struct attach_result result = {.status = ATTACH_OK, .text = ""};
	struct attachment *a;

	(void)state;
	enter(1);
	a = attachments_find(&all, "box-1");
	assert_non_null(a);
	for (unsigned i = 0; i < ATTACH_PENDING_MAX; i++)
		assert_true(attachment_wait(a, OPERATION_PAUSE, 7, on_done, NULL));
	assert_int_equal(answered.count, 0);
	assert_false(attachment_wait(a, OPERATION_PAUSE, 7, on_done, NULL));
	assert_int_equal(answered.count, 1);
	assert_int_equal(answered.status, ATTACH_BUSY);
	assert_string_equal(answered.text, "too many operations on box-1 are under way");
	attachment_answer(a, OPERATION_PAUSE, 7, &result);
	assert_int_equal(answered.count, 1 + ATTACH_PENDING_MAX);
	assert_int_equal(answered.status, ATTACH_OK);
	assert_true(attachment_wait(a, OPERATION_PAUSE, 7, on_done, NULL));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test_setup_teardown(one_more_than_there_may_be, set_up, tear_down),
	        cmocka_unit_test_setup_teardown(
	                one_operation_more_than_may_wait, set_up, tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
