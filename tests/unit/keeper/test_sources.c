/* SPDX-License-Identifier: Apache-2.0 */
/* Values and the time they are good for, on a machine that sleeps: sources in this process, whose
 * supervisor and worker are the test. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

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
	uint32_t ttl_s;
	unsigned answers;
} f;

static void on_answer(struct source *source, uint64_t question, struct slice value, uint32_t ttl_s,
        const char *error)
{
	(void)question;
	assert_ptr_equal(source, &f.source);
	assert_null(error);
	assert_true(value.n < sizeof(f.got));
	memcpy(f.got, value.p, value.n);
	f.got[value.n] = 0;
	f.ttl_s = ttl_s;
	f.answers++;
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
	f.sources = (struct sources){.loop = f.loop, .supervisor = &f.supervisor};
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
	ipc_peer_close(&f.supervisor);
	close(f.other_end);
	loop_timer_close(&f.stop);
	loop_free(f.loop);
	return 0;
}

static void ask(void)
{
	assert_int_equal(source_get(&f.source, 1), 0);
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

/* What a service tells counts, and the value is given up a little before its end. */
static void a_told_lifetime_counts(void **state)
{
	(void)state;
	ask();
	give_for("first-value", 100);
	assert_in_range(f.ttl_s, 89, 90);
	host_sleeps(91);
	ask();
	assert_int_equal(f.answers, 1);
	give_for("second-value", 24 * HOUR_S);
	assert_in_range(f.ttl_s, 24 * HOUR_S - 31, 24 * HOUR_S - 30);
	host_sleeps(24 * HOUR_S);
	ask();
	give("third-value"); /* nothing is told any more: the policy's counts */
	assert_int_equal(f.ttl_s, HOUR_S);
}

static void a_value_ages_while_the_machine_sleeps(void **state)
{
	(void)state;
	ask();
	give("first-value");
	assert_string_equal(f.got, "first-value");
	assert_int_equal(f.ttl_s, HOUR_S);
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
	assert_int_equal(f.ttl_s, HOUR_S);
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

/* Whoever opens the file could not work on it either while the machine slept. */
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

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test_setup_teardown(a_told_lifetime_counts, set_up, tear_down),
	        cmocka_unit_test_setup_teardown(
	                a_value_ages_while_the_machine_sleeps, set_up, tear_down),
	        cmocka_unit_test_setup_teardown(one_without_an_end_stays, set_up, tear_down),
	        cmocka_unit_test_setup_teardown(a_question_does_not_age, set_up, tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
