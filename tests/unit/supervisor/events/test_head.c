/* SPDX-License-Identifier: Apache-2.0 */
/* A question for the log's last line is answered once, whatever the recorder says or does not say.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#include <errno.h>
#include <stdio.h>

#include "supervisor/events/head.h"
#include "supervisor/events/private.h"

static const char fine[] = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef";

static struct {
	unsigned told, none;
	char last[SEAL_HASH_DIGITS + 1];
} heard;

static void told(void *context, const char *fingerprint)
{
	assert_ptr_equal(context, &heard);
	heard.told++;
	heard.none += fingerprint == NULL;
	snprintf(heard.last, sizeof(heard.last), "%s", fingerprint ? fingerprint : "");
}

static struct supervisor supervisor(void)
{
	struct supervisor sv = {.loop = loop_new(), .recorder_life.ready = true};

	assert_non_null(sv.loop);
	memset(&heard, 0, sizeof(heard));
	return sv;
}

static void without_a_recorder_there_is_none(void **state)
{
	struct supervisor sv = supervisor();

	(void)state;
	sv.recorder_life.ready = false;
	assert_int_equal(head_ask(&sv, told, &heard), 0);
	assert_int_equal(heard.none, 1);
	assert_null(sv.recorder_life.head);
	loop_free(sv.loop);
}

static void all_who_ask_get_the_answer(void **state)
{
	struct supervisor sv = supervisor();
	uint64_t id;

	(void)state;
	for (unsigned i = 0; i < HEAD_WAITING_MAX; i++)
		assert_int_equal(head_ask(&sv, told, &heard), 0);
	assert_int_equal(head_ask(&sv, told, &heard), -EBUSY);
	id = sv.last_id;
	assert_int_equal(heard.told, 0);
	assert_int_equal(head_answered(&sv, id - 1, slice_from_string(fine)), 0); /* too late */
	assert_int_equal(heard.told, 0);
	assert_int_equal(head_answered(&sv, id, slice_from_string(fine)), 0);
	assert_int_equal(heard.told, HEAD_WAITING_MAX);
	assert_string_equal(heard.last, fine);
	assert_null(sv.recorder_life.head);
	assert_int_equal(head_answered(&sv, id, slice_from_string(fine)), 0);
	assert_int_equal(heard.told, HEAD_WAITING_MAX);
	/* None yet. */
	assert_int_equal(head_ask(&sv, told, &heard), 0);
	assert_int_equal(head_answered(&sv, sv.last_id, SLICE("")), 0);
	assert_int_equal(heard.none, 1);
	loop_free(sv.loop);
}

static void what_is_no_fingerprint_breaks_the_protocol(void **state)
{
	struct supervisor sv = supervisor();
	char longer[sizeof(fine) + 1];
	char other[sizeof(fine)];

	(void)state;
	assert_int_equal(head_ask(&sv, told, &heard), 0);
	snprintf(longer, sizeof(longer), "%s0", fine);
	assert_int_equal(head_answered(&sv, sv.last_id, slice_from_string(longer)), -EBADMSG);
	assert_int_equal(head_answered(&sv, sv.last_id, slice_of(fine, 63)), -EBADMSG);
	for (const char *wrong = "ABCXYZg \n\"\\\x7f"; *wrong; wrong++) {
		memcpy(other, fine, sizeof(other));
		other[33] = *wrong;
		assert_int_equal(
		        head_answered(&sv, sv.last_id, slice_from_string(other)), -EBADMSG);
	}
	memcpy(other, fine, sizeof(other));
	other[5] = '\0';
	assert_int_equal(head_answered(&sv, sv.last_id, slice_of(other, 64)), -EBADMSG);
	assert_int_equal(heard.told, 0);
	head_fini(&sv);
	assert_int_equal(heard.none, 1);
	head_fini(&sv);
	assert_int_equal(heard.told, 1);
	loop_free(sv.loop);
}

static void on_time(struct loop_timer *timer)
{
	loop_stop(timer->loop);
}

static void a_recorder_that_says_nothing_is_not_waited_for(void **state)
{
	struct supervisor sv = supervisor();
	struct loop_timer timer;

	(void)state;
	assert_int_equal(loop_timer_open(sv.loop, &timer, on_time), 0);
	loop_timer_set(&timer, HEAD_PATIENCE_MS + 200);
	assert_int_equal(head_ask(&sv, told, &heard), 0);
	assert_int_equal(loop_run(sv.loop), 0);
	assert_int_equal(heard.none, 1);
	assert_null(sv.recorder_life.head);
	loop_timer_close(&timer);
	loop_free(sv.loop);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(without_a_recorder_there_is_none),
	        cmocka_unit_test(all_who_ask_get_the_answer),
	        cmocka_unit_test(what_is_no_fingerprint_breaks_the_protocol),
	        cmocka_unit_test(a_recorder_that_says_nothing_is_not_waited_for),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
