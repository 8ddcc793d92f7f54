/* SPDX-License-Identifier: Apache-2.0 */
/* Values and the time they are good for, on a machine that sleeps: sources in this process, whose
 * supervisor and worker are the test. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "keeper/marker.h"
#include "keeper/sources.h"
#include "sleeping_host.h"

#define HOUR_S 3600

static struct {
	struct loop *loop;
	struct loop_timer stop;
	struct ipc_peer supervisor;
	int other_end;
	struct sources sources;
	struct source source;
	char got[64]; /* the last answer */
	uint32_t ttl_s, renew_s;
	unsigned answers;
	char error[SOURCE_ERROR_MAX]; /* the same */
	struct marker marker;
	uint64_t operated; /* id of the last operation that is done */
	char operated_error[SOURCE_ERROR_MAX];
	uint32_t operated_ttl_s;
	uint8_t mark[MESSAGE_CREDENTIAL_MARK_BYTES];
} f;

static void on_answer(struct source *source, uint64_t question, struct slice value, uint32_t ttl_ms,
        uint32_t renew_ms, const char *error)
{
	(void)question;
	assert_ptr_equal(source, &f.source);
	f.answers++;
	snprintf(f.error, sizeof(f.error), "%s", error ? error : "");
	f.renew_s = renew_ms / 1000;
	assert_true(value.n < sizeof(f.got));
	memcpy(f.got, value.p, value.n);
	f.got[value.n] = 0;
	f.ttl_s = ttl_ms / 1000;
}

static void on_operated(
        struct source *source, uint64_t id, const char *error, struct slice mark, uint32_t ttl_s)
{
	assert_ptr_equal(source, &f.source);
	f.operated = id;
	f.operated_ttl_s = ttl_s;
	snprintf(f.operated_error, sizeof(f.operated_error), "%s", error ? error : "");
	assert_int_equal(mark.n, error ? 0 : MESSAGE_CREDENTIAL_MARK_BYTES);
	memcpy(f.mark, mark.p, mark.n);
}

static int on_message(struct ipc_peer *peer, struct ipc_message *message)
{
	(void)peer;
	(void)message;
	return 0;
}

static void on_end(struct ipc_peer *peer, int error)
{
	(void)peer;
	(void)error;
}

static void on_stop(struct loop_timer *timer)
{
	loop_stop(timer->loop);
}

static int set_up(void **state)
{
	int pair[2];

	(void)state;
	memset(&f, 0, sizeof(f));
	f.loop = loop_new();
	if (!f.loop || ipc_pair(pair) != 0 || loop_timer_open(f.loop, &f.stop, on_stop) != 0)
		return -1;
	f.other_end = pair[1];
	if (marker_init(&f.marker) != 0)
		return -1;
	f.sources = (struct sources){.loop = f.loop,
	        .supervisor = &f.supervisor,
	        .marker = &f.marker,
	        .on_operated = on_operated};
	f.source = (struct source){.sources = &f.sources,
	        .sandbox = "box",
	        .name = "key",
	        .ttl_s = HOUR_S,
	        .on_answer = on_answer};
	source_init(&f.source);
	return ipc_peer_open(f.loop, &f.supervisor, pair[0], "supervisor", on_message, on_end);
}

static int tear_down(void **state)
{
	(void)state;
	source_fini(&f.source);
	marker_fini(&f.marker);
	ipc_peer_close(&f.supervisor);
	close(f.other_end);
	loop_timer_close(&f.stop);
	loop_free(f.loop);
	return 0;
}

static void ask(void)
{
	assert_int_equal(source_get(&f.source, 1, false), 0);
}

/* The supervisor's answer to the open question: a file with that value. */
static void give_for(const char *value, uint32_t ttl_s)
{
	const struct message_source answer = {.opened = true, .ttl_s = ttl_s};
	struct ipc_message message = {.fd_count = 1};
	uint8_t bytes[256];
	size_t n;

	assert_int_equal(f.source.state, SOURCE_ASKED);
	n = message_source_encode(bytes, sizeof(bytes), MESSAGE_SOURCE, f.source.question, &answer);
	assert_int_equal(message_open(bytes, n, &message.head, &message.body), 0);
	message.fds[0] = memfd_create("value", MFD_CLOEXEC);
	assert_true(message.fds[0] >= 0);
	assert_int_equal(write(message.fds[0], value, strlen(value)), (ssize_t)strlen(value));
	assert_int_equal(lseek(message.fds[0], 0, SEEK_SET), 0);
	assert_int_equal(sources_on_message(&f.sources, &message), 0);
}

static void give(const char *value)
{
	give_for(value, 0);
}

/* The lifetime that a service tells counts, and the value is given up a little before its end. */
static void a_told_lifetime_counts(void **state)
{
	(void)state;
	ask();
	give_for("first-value", 100);
	assert_in_range(f.ttl_s, 97, 98);
	assert_in_range(f.renew_s, 89, 95);
	host_sleeps(98);
	ask();
	assert_int_equal(f.answers, 1);
	give_for("second-value", 24 * HOUR_S);
	assert_in_range(f.ttl_s, 24 * HOUR_S - 6, 24 * HOUR_S - 5);
	assert_in_range(f.renew_s, 24 * HOUR_S - 61, 24 * HOUR_S - 30);
	host_sleeps(24 * HOUR_S);
	ask();
	give("third-value"); /* nothing is told any more: the policy's counts */
	assert_in_range(f.ttl_s, HOUR_S - 1, HOUR_S);
}

static void a_value_ages_while_the_machine_sleeps(void **state)
{
	(void)state;
	ask();
	give("first-value");
	assert_string_equal(f.got, "first-value");
	assert_in_range(f.ttl_s, HOUR_S - 1, HOUR_S);
	host_sleeps(HOUR_S / 2);
	ask();
	assert_int_equal(f.answers, 2);
	assert_in_range(f.ttl_s, HOUR_S / 2 - 5, HOUR_S / 2);
	host_sleeps(HOUR_S / 2 + 1);
	ask(); /* nobody gets what is over: it is read anew */
	assert_int_equal(f.answers, 2);
	assert_null(f.source.value.p);
	give("second-value");
	assert_string_equal(f.got, "second-value");
	assert_in_range(f.ttl_s, HOUR_S - 1, HOUR_S);
}

static void one_without_an_end_stays(void **state)
{
	(void)state;
	f.source.ttl_s = 0;
	ask();
	give("first-value");
	host_sleeps(1000 * HOUR_S);
	ask();
	assert_int_equal(f.answers, 2);
	assert_int_equal(f.ttl_s, 0);
	assert_string_equal(f.got, "first-value");
}

/* The process that opens the file could not work either while the machine slept. */
static void a_question_does_not_age(void **state)
{
	(void)state;
	ask();
	host_sleeps(HOUR_S);
	loop_timer_set(&f.stop, 20);
	assert_int_equal(loop_run(f.loop), 0);
	give("first-value");
	assert_string_equal(f.got, "first-value");
}

/* The supervisor's answer to the open question: it could not be opened. */
static int answer_with(struct message_source answer)
{
	struct ipc_message message = {.fd_count = 0};
	uint8_t bytes[256];
	size_t n;

	assert_int_equal(f.source.state, SOURCE_ASKED);
	n = message_source_encode(bytes, sizeof(bytes), MESSAGE_SOURCE, f.source.question, &answer);
	assert_int_equal(message_open(bytes, n, &message.head, &message.body), 0);
	return sources_on_message(&f.sources, &message);
}

static void refuse(const char *why)
{
	assert_int_equal(answer_with((struct message_source){.error = slice_from_string(why)}), 0);
}

static void renew(void)
{
	assert_int_equal(source_get(&f.source, 2, true), 0);
}

/* While the next value is fetched, requests without a value get the earlier one. */
static void a_value_is_renewed_while_it_is_used(void **state)
{
	(void)state;
	ask();
	give_for("first-value", 100);
	renew(); /* too early: it gets what there is */
	assert_int_equal(f.answers, 2);
	assert_string_equal(f.got, "first-value");
	host_sleeps(96);
	renew();
	assert_int_equal(f.answers, 2);
	ask();
	assert_int_equal(f.answers, 3);
	assert_string_equal(f.got, "first-value");
	give_for("second-value", 100);
	assert_int_equal(f.answers, 4);
	assert_string_equal(f.got, "second-value");
	assert_in_range(f.ttl_s, 97, 98);
}

static void a_renewal_fails(void **state)
{
	(void)state;
	ask();
	give_for("first-value", 1000);
	host_sleeps(972);
	renew();
	refuse("no");
	assert_int_equal(f.answers, 2);
	assert_string_equal(f.got, "first-value"); /* it is good for some time yet */
	assert_string_equal(f.error, "");
	assert_string_equal(f.source.error, "no");
	assert_in_range(f.ttl_s, 21, 23);
	renew(); /* nobody is asked again at once */
	assert_int_equal(f.answers, 3);
	assert_int_equal(f.source.state, SOURCE_HELD);
	host_sleeps(60);
	ask();
	assert_int_equal(f.answers, 4);
	assert_string_equal(f.error, "no");
	assert_string_equal(f.got, "");
}

static uint8_t mark_of_held[MESSAGE_CREDENTIAL_MARK_BYTES];

static void operate(enum message_credential_what what)
{
	memcpy(mark_of_held, f.source.mark, sizeof(mark_of_held));
	assert_null(source_operate(&f.source, what, 77));
}

static void a_rotation(void **state)
{
	(void)state;
	ask();
	give("first-value");
	operate(MESSAGE_CREDENTIAL_ROTATE);
	ask(); /* the one before is used meanwhile */
	assert_string_equal(f.got, "first-value");
	assert_non_null(source_operate(&f.source, MESSAGE_CREDENTIAL_CHECK, 78));
	give_for("second-value", 500);
	assert_int_equal(f.operated, 77);
	assert_string_equal(f.operated_error, "");
	assert_int_equal(f.operated_ttl_s, 500);
	assert_memory_equal(f.mark, f.source.mark, sizeof(f.mark));
	assert_memory_not_equal(f.mark, mark_of_held, sizeof(f.mark));
	ask();
	assert_string_equal(f.got, "second-value");
	operate(MESSAGE_CREDENTIAL_ROTATE); /* to the same value: the mark is the same */
	give("second-value");
	assert_memory_equal(f.mark, mark_of_held, sizeof(f.mark));
}

static void a_rotation_fails(void **state)
{
	(void)state;
	ask();
	give("first-value");
	operate(MESSAGE_CREDENTIAL_ROTATE);
	refuse("no");
	assert_string_equal(f.operated_error, "no");
	ask();
	assert_string_equal(f.got, "first-value");
	operate(MESSAGE_CREDENTIAL_ROTATE); /* an operator may try again at once */
	give("short");
	assert_non_null(strstr(f.operated_error, "fewer than 6 bytes"));
	ask();
	assert_string_equal(f.got, "first-value");
}

/* A question that began before the operator asked may bring the former value. */
static void a_rotation_waits_for_its_own_fetch(void **state)
{
	(void)state;
	ask();
	operate(MESSAGE_CREDENTIAL_ROTATE);
	give("first-value");
	assert_string_equal(f.got, "first-value");
	assert_int_equal(f.operated, 0);
	give("second-value");
	assert_int_equal(f.operated, 77);
	ask();
	assert_string_equal(f.got, "second-value");
	operate(MESSAGE_CREDENTIAL_ROTATE);
	source_end_operation(&f.source, "gone");
	assert_string_equal(f.operated_error, "gone");
}

static void a_check(void **state)
{
	(void)state;
	operate(MESSAGE_CREDENTIAL_CHECK);
	give("first-value"); /* nothing was held: it is not wasted */
	assert_int_equal(f.operated, 77);
	ask();
	assert_string_equal(f.got, "first-value");
	operate(MESSAGE_CREDENTIAL_CHECK);
	give("second-value");
	assert_memory_not_equal(f.mark, f.source.mark, sizeof(f.mark));
	ask();
	assert_string_equal(f.got, "first-value");
	operate(MESSAGE_CREDENTIAL_CHECK);
	refuse("no");
	assert_string_equal(f.operated_error, "no");
	ask();
	assert_string_equal(f.got, "first-value");
}

static void a_revocation(void **state)
{
	(void)state;
	ask();
	give("first-value");
	assert_null(source_operate(&f.source, MESSAGE_CREDENTIAL_REVOKE, 77));
	assert_null(f.source.value.p);
	ask();
	assert_non_null(strstr(f.error, "revoked"));
	renew();
	assert_non_null(strstr(f.error, "revoked"));
	assert_int_equal(f.source.state, SOURCE_EMPTY);
	operate(MESSAGE_CREDENTIAL_CHECK); /* looks, and gives nothing out */
	give("second-value");
	assert_string_equal(f.operated_error, "");
	ask();
	assert_non_null(strstr(f.error, "revoked"));
	operate(MESSAGE_CREDENTIAL_ROTATE);
	refuse("no");
	ask();
	assert_non_null(strstr(f.error, "revoked"));
	operate(MESSAGE_CREDENTIAL_ROTATE);
	give("third-value");
	ask();
	assert_string_equal(f.got, "third-value");
}

/* A value on its way when it is revoked reaches nobody, whoever asked for it. */
static void a_revocation_in_the_middle(void **state)
{
	(void)state;
	ask();
	assert_null(source_operate(&f.source, MESSAGE_CREDENTIAL_REVOKE, 77));
	assert_int_equal(f.answers, 1);
	assert_non_null(strstr(f.error, "revoked"));
	give("first-value");
	assert_int_equal(f.answers, 1);
	assert_null(f.source.value.p);
	operate(MESSAGE_CREDENTIAL_ROTATE);
	assert_null(source_operate(&f.source, MESSAGE_CREDENTIAL_REVOKE, 78));
	assert_non_null(strstr(f.operated_error, "revoked meanwhile"));
	give("second-value");
	assert_null(f.source.value.p);
	ask();
	assert_non_null(strstr(f.error, "revoked"));
}

static void a_lease_is_renewed(void **state)
{
	const struct message_source same = {.same = true, .ttl_s = 100, .error = SLICE("")};

	(void)state;
	ask();
	assert_int_equal(answer_with(same), -EBADMSG); /* nothing is held that could live on */
	give_for("first-value", 100);
	host_sleeps(96);
	renew();
	assert_int_equal(answer_with(same), 0);
	assert_string_equal(f.got, "first-value");
	assert_in_range(f.ttl_s, 97, 98);
	host_sleeps(96);
	renew();
	host_sleeps(
	        5); /* it ends in the meantime: the timer stands still while the machine sleeps */
	assert_int_equal(answer_with(same), 0);
	assert_string_equal(f.got, "first-value");
	operate(MESSAGE_CREDENTIAL_ROTATE);
	assert_int_equal(answer_with(same), -EBADMSG); /* an operator wants another one */
	give("second-value");
}

/* The value ends while its lease is being renewed: waiting requests get another value, not the
 * failure. */
static void a_renewal_comes_too_late(void **state)
{
	const struct message_source same = {.same = true, .ttl_s = 100, .error = SLICE("")};

	(void)state;
	ask();
	give_for("first-value", 100);
	for (unsigned i = 0; i < 2; i++) {
		unsigned answers = f.answers;

		host_sleeps(96);
		renew();
		host_sleeps(5);
		ask();
		assert_int_equal(f.answers, answers);
		source_value_drop(&f.source);
		if (i)
			refuse("lease not found");
		else
			assert_int_equal(answer_with(same), 0);
		assert_int_equal(f.answers, answers);
		assert_int_equal(f.source.state, SOURCE_ASKED);
		give_for(i ? "third-value" : "second-value", 100);
		assert_int_equal(f.answers, answers + 2);
		assert_string_equal(f.got, i ? "third-value" : "second-value");
		assert_string_equal(f.error, "");
	}
	host_sleeps(96);
	renew();
	host_sleeps(5);
	source_value_drop(&f.source);
	refuse("lease not found");
	refuse("sealed"); /* an answer that is not a renewal fails once, and waiting requests learn
	                     of it */
	assert_string_equal(f.error, "sealed");
	assert_int_equal(f.source.state, SOURCE_EMPTY);
}

/* The service is left alone for as long as it wants, whoever asks. */
static void a_source_is_left_alone(void **state)
{
	const struct message_source busy = {.retry_s = 1, .error = SLICE("slow down")};

	(void)state;
	ask();
	assert_int_equal(answer_with(busy), 0);
	assert_string_equal(f.error, "slow down");
	assert_non_null(source_operate(&f.source, MESSAGE_CREDENTIAL_CHECK, 77));
	ask();
	assert_string_equal(f.error, "slow down");
	assert_int_equal(f.source.state, SOURCE_EMPTY);
	loop_timer_set(&f.stop, 2100);
	assert_int_equal(loop_run(f.loop), 0);
	ask();
	give("first-value");
	assert_string_equal(f.got, "first-value");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test_setup_teardown(a_told_lifetime_counts, set_up, tear_down),
	        cmocka_unit_test_setup_teardown(
	                a_value_ages_while_the_machine_sleeps, set_up, tear_down),
	        cmocka_unit_test_setup_teardown(one_without_an_end_stays, set_up, tear_down),
	        cmocka_unit_test_setup_teardown(a_question_does_not_age, set_up, tear_down),
	        cmocka_unit_test_setup_teardown(
	                a_value_is_renewed_while_it_is_used, set_up, tear_down),
	        cmocka_unit_test_setup_teardown(a_renewal_fails, set_up, tear_down),
	        cmocka_unit_test_setup_teardown(a_renewal_comes_too_late, set_up, tear_down),
	        cmocka_unit_test_setup_teardown(a_rotation, set_up, tear_down),
	        cmocka_unit_test_setup_teardown(a_rotation_fails, set_up, tear_down),
	        cmocka_unit_test_setup_teardown(
	                a_rotation_waits_for_its_own_fetch, set_up, tear_down),
	        cmocka_unit_test_setup_teardown(a_check, set_up, tear_down),
	        cmocka_unit_test_setup_teardown(a_revocation, set_up, tear_down),
	        cmocka_unit_test_setup_teardown(a_revocation_in_the_middle, set_up, tear_down),
	        cmocka_unit_test_setup_teardown(a_lease_is_renewed, set_up, tear_down),
	        cmocka_unit_test_setup_teardown(a_source_is_left_alone, set_up, tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
