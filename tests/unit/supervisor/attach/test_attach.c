/* SPDX-License-Identifier: Apache-2.0 */
/* Bounds of the daemon's registry: as many sandboxes as there may be, and as many operations on one
 * of them; the next is refused and changes nothing. And a sandbox's ttl: the sandbox ends with
 * it. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "vethguard/base/clock.h"
#include "attach_fixture.h"
#include "supervisor/os/fd_limit.h"

static int set_up(void **state)
{
	(void)state;
	return set_up_daemon();
}

static int tear_down(void **state)
{
	struct attachment *a, *next;

	(void)state;
	HASH_ITER(hh, all.by_name, a, next)
	attachment_free(a);
	free(all.bundles.configs);
	all.bundles.configs = NULL;
	loop_free(supervisor.loop);
	return 0;
}

static void enter(unsigned number)
{
	struct attachment *a = attachment_new(&all);

	assert_non_null(a);
	snprintf(a->record.name, sizeof(a->record.name), "box-%u", number);
	assert_int_equal(attachment_enter(a), 0);
}

/* A request about a missing namespace: a caller that gets so far is told of that. */
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
	assert_string_equal(answered.text,
	        "the daemon already has 2000 sandboxes, which is the most it may have: detach one");
	assert_int_equal(attachments_count(&all), ATTACHMENTS_MAX);
	assert_null(attachments_find(&all, "beyond"));
}

static void ask(enum attach_purpose purpose, const char *netns)
{
	const struct attach_request request = {.purpose = purpose,
	        .name = "claimer",
	        .kind = ATTACH_NETNS,
	        .netns = netns,
	        .policy = purpose == ATTACH_TO_CLAIM ? "/nowhere/policy.yaml" : NULL,
	        .caller = {.uid = getuid(), .gid = getgid(), .fixed = getuid() != 0}};

	memset(&answered, 0, sizeof(answered));
	attachments_attach(&all, &request, on_done, NULL);
	assert_int_equal(answered.count, 1);
}

/* A claim takes the place of what it claims, so it is not refused for want of one; what is prepared
 * takes one. */
static void prepared_ones_count_and_claims_do_not(void **state)
{
	(void)state;
	for (unsigned i = 0; i < ATTACHMENTS_MAX; i++)
		enter(i);
	ask(ATTACH_TO_PREPARE, "/nowhere/at-all");
	assert_int_equal(answered.status, ATTACH_BUSY);
	assert_non_null(strstr(answered.text, "already has 2000 sandboxes"));
	ask(ATTACH_TO_CLAIM, NULL);
	assert_int_equal(answered.status, ATTACH_BUSY);
	assert_non_null(strstr(answered.text, "no namespace is prepared"));
	ask(ATTACH_TO_CLAIM, "/nowhere/at-all");
	assert_int_equal(answered.status, ATTACH_INVALID);
	assert_non_null(strstr(answered.text, "/nowhere/at-all"));
	assert_int_equal(attachments_count(&all), ATTACHMENTS_MAX);
	assert_null(attachments_find(&all, "claimer"));
}

static void ask_session(const char *name)
{
	const struct attach_request request = {.name = name,
	        .kind = ATTACH_SESSION,
	        .policy = "/nowhere/policy.yaml",
	        .caller = {.uid = getuid(), .gid = getgid(), .fixed = getuid() != 0}};

	memset(&answered, 0, sizeof(answered));
	attachments_attach(&all, &request, on_done, NULL);
	assert_int_equal(answered.count, 1);
}

/* Sessions and other sandboxes have a bound each. */
static void sessions_are_counted_by_themselves(void **state)
{
	struct attachment *a;

	(void)state;
	supervisor.gateway.config.listener_count = 1;
	for (unsigned i = 0; i < SESSIONS_MAX; i++) {
		a = attachment_new(&all);
		assert_non_null(a);
		snprintf(a->record.name, sizeof(a->record.name), "session-%u", i);
		a->record.kind = ATTACH_SESSION;
		assert_int_equal(attachment_enter(a), 0);
	}
	ask_session("beyond");
	assert_int_equal(answered.status, ATTACH_BUSY);
	assert_string_equal(answered.text,
	        "the daemon already has 6000 sessions, which is the most it may have: revoke one");
	attach("other");
	assert_int_equal(answered.status, ATTACH_INVALID);
	assert_non_null(strstr(answered.text, "/nowhere/at-all"));
	attachment_free(attachments_find(&all, "session-0"));
	ask_session("again");
	assert_int_equal(answered.status, ATTACH_INVALID);
	assert_null(strstr(answered.text, "already has"));
	for (unsigned i = 0; i < ATTACHMENTS_MAX; i++)
		enter(i);
	ask_session("beside");
	assert_int_equal(answered.status, ATTACH_INVALID);
	attach("beyond");
	assert_int_equal(answered.status, ATTACH_BUSY);
	assert_non_null(strstr(answered.text, "already has 2000 sandboxes"));
}

/* A namespace that is prepared needs the addresses of the configuration. That is not a reload:
 * the files of trusted CAs are not examined for it, a hundred times in a row. */
static void only_a_reload_looks_at_the_ca(void **state)
{
	const uint32_t before_s = 7;
	struct config config;

	(void)state;
	supervisor.ca_life.config.overlap_s = before_s;
	assert_null(attachments_config_objection(&all, &config));
	assert_int_equal(supervisor.ca_life.config.overlap_s, before_s);
	assert_null(attachments_config_objection(&all, NULL));
	assert_int_equal(supervisor.ca_life.config.overlap_s, config.ca.overlap_s);
	assert_int_not_equal(config.ca.overlap_s, before_s);
	config_fini(&config);
}

static struct attachment *enter_record(unsigned number, uint64_t id, bool prepared, bool claimed)
{
	char name[32];
	struct attachment *a;

	enter(number);
	snprintf(name, sizeof(name), "box-%u", number);
	a = attachments_find(&all, name);
	a->record.id = id;
	a->record.prepared = prepared;
	a->record.claimed = claimed;
	return a;
}

/* The daemon died when the claim was written and the prepared one not yet removed. */
static void of_two_with_one_id_the_claim_counts(void **state)
{
	char folder[] = "/tmp/test_attach.XXXXXX";
	int fd;

	(void)state;
	assert_non_null(mkdtemp(folder));
	fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	all.state = fd;
	close(openat(fd, "box-1.json", O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
	close(openat(fd, "box-2.json", O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
	enter_record(1, 7, true, false);
	enter_record(2, 8, true, false);
	enter_record(3, 7, false, true);
	enter_record(4, 8, false, false); /* somebody else's, whatever its id */
	attachments_drop_claimed(&all);
	assert_null(attachments_find(&all, "box-1"));
	assert_non_null(attachments_find(&all, "box-2"));
	assert_non_null(attachments_find(&all, "box-3"));
	assert_false(state_exists(fd, "box-1"));
	assert_true(state_exists(fd, "box-2"));
	unlinkat(fd, "box-2.json", 0);
	close(fd);
	assert_int_equal(rmdir(folder), 0);
}

static void what_a_prepared_one_cannot(void **state)
{
	static const struct identity caller;

	(void)state;
	enter_record(1, 7, true, false);
	enter_record(2, 8, false, false);
	attachments_reload(&all, "box-1", "/some/policy.yaml", &caller, on_done, NULL);
	assert_int_equal(answered.status, ATTACH_CONFLICT);
	assert_non_null(strstr(answered.text, "'vethguard claim' gives it one"));
	attachments_pause(&all, "box-1", "a reason", on_done, NULL);
	assert_int_equal(answered.status, ATTACH_CONFLICT);
	attachments_env(&all, "box-1", on_done, NULL);
	assert_int_equal(answered.status, ATTACH_CONFLICT);
	attachments_give_back(&all, "box-1", on_done, NULL);
	assert_int_equal(answered.status, ATTACH_CONFLICT);
	assert_non_null(strstr(answered.text, "nobody has claimed it"));
	attachments_give_back(&all, "box-2", on_done, NULL);
	assert_int_equal(answered.status, ATTACH_CONFLICT);
	assert_non_null(strstr(answered.text, "attached, not claimed"));
	attachments_give_back(&all, "box-3", on_done, NULL);
	assert_int_equal(answered.status, ATTACH_NOT_FOUND);
	assert_int_equal(answered.count, 6);
}

/* A caller attaches and detaches again and again while nothing can be written: the recorder has
 * room for this many, and so has its successor. */
static void more_that_have_ended_than_may_wait(void **state)
{
	struct recorded left[RECORDING_LEFT_MAX] = {0};

	(void)state;
	for (size_t i = 0; i < RECORDING_LEFT_MAX; i++) {
		left[i].next = supervisor.recording.left;
		supervisor.recording.left = &left[i];
	}
	attach("one");
	assert_int_equal(answered.status, ATTACH_BUSY);
	assert_non_null(strstr(answered.text, "are not in the audit log yet"));
	supervisor.recording.left = left[RECORDING_LEFT_MAX - 1].next;
	attach("one");
	assert_int_equal(answered.status, ATTACH_INVALID);
	assert_non_null(strstr(answered.text, "/nowhere/at-all"));
	supervisor.recording.left = NULL;
}

static void a_place_is_left_once(void **state)
{
	const struct attach_target target = attach_target_of_interface("eth7");
	struct attachment *a;

	(void)state;
	enter(1);
	a = attachments_find(&all, "box-1");
	for (int i = 0; i < 2; i++) {
		assert_int_equal(attachment_settle_at(a, &target), 0);
		assert_ptr_equal(attachments_at(&all, &target), a);
		attachment_leave_target(a);
		attachment_leave_target(a);
		assert_null(attachments_at(&all, &target));
	}
}

static void no_descriptors_for_another(void **state)
{
	struct rlimit before, few;

	(void)state;
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
	few = (struct rlimit){FD_LIMIT_KEPT, before.rlim_max};
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &few), 0);
	attach("beyond");
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
	assert_int_equal(answered.count, 1);
	assert_int_equal(answered.status, ATTACH_BUSY);
	assert_non_null(strstr(answered.text, "it may have 192 open files"));
	assert_int_equal(attachments_count(&all), 0);
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

/* A sandbox without a gate, whose state is on the disk, with so much time left. */
static void attach_for(int64_t left_ms)
{
	struct attachment *a;

	enter(1);
	a = attachments_find(&all, "box-1");
	a->record.policy = strdup("/nowhere/policy.yaml");
	a->record.kind = ATTACH_NETNS;
	a->record.netns = strdup("/nowhere/at-all");
	a->record.generation = 1;
	a->record.expires_ms = clock_real_ms() + left_ms;
	a->sandbox = sandbox_new(&supervisor, &a->owner, true);
	assert_true(a->record.policy && a->record.netns && a->sandbox);
	a->record.id = a->sandbox->id;
	a->sandbox->state = SANDBOX_SERVING;
	assert_int_equal(attachment_save(a), 0);
	assert_true(attachment_wait(a, OPERATION_PAUSE, 0, on_done, NULL));
	assert_int_equal(attachment_watch(a), 0);
}

static struct loop_timer look;

static void on_look(struct loop_timer *timer)
{
	if (!all.by_name)
		loop_stop(supervisor.loop);
	else
		loop_timer_set(timer, 1);
}

/* Also if it was over before the daemon looked: the daemon did not run, or the clock was set. */
static void a_sandbox_ends_with_its_time(void **state)
{
	static const int64_t left_ms[] = {50, 0, -1000, -INT64_C(3600000)};
	char folder[] = "/tmp/test_attach.XXXXXX";
	int fd;

	(void)state;
	assert_non_null(mkdtemp(folder));
	fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	assert_true(fd >= 0);
	all.state = supervisor.names = fd;
	assert_int_equal(loop_timer_open(supervisor.loop, &look, on_look), 0);
	for (size_t i = 0; i < sizeof(left_ms) / sizeof(left_ms[0]); i++) {
		int64_t since_ms = clock_monotonic_ms();

		answered.count = 0;
		attach_for(left_ms[i]);
		loop_timer_set(&look, 0);
		assert_int_equal(loop_run(supervisor.loop), 0);
		assert_true(clock_monotonic_ms() - since_ms >= left_ms[i] - 1);
		assert_null(supervisor.sandboxes);
		assert_int_equal(answered.count, 1); /* whoever waited for it is told */
		assert_int_equal(answered.status, ATTACH_CONFLICT);
		assert_int_equal(faccessat(fd, "box-1.json", F_OK, 0), -1);
	}
	loop_timer_close(&look);
	close(fd);
	assert_int_equal(rmdir(folder), 0);
}

/* Of an attachment without a sandbox, whose link the kernel is still removing. */
static void one_that_is_being_detached(void **state)
{
	static const struct identity caller;
	struct attachment *a;

	(void)state;
	enter(1);
	a = attachments_find(&all, "box-1");
	a->detaching = true;
	attachments_reload(&all, "box-1", "/some/policy.yaml", &caller, on_done, NULL);
	assert_int_equal(answered.status, ATTACH_BUSY);
	assert_string_equal(answered.text, "box-1 is being detached");
	memset(&answered, 0, sizeof(answered));
	attachments_pause(&all, "box-1", "a reason", on_done, NULL);
	assert_int_equal(answered.status, ATTACH_BUSY);
	assert_string_equal(answered.text, "box-1 is being detached");
}

/* A reload of all is told to ask again; a sandbox that is being detached needs no reload. */
static void all_while_one_is_attached_and_one_detached(void **state)
{
	struct attachment *a, *b;

	(void)state;
	enter(1);
	enter(2);
	a = attachments_find(&all, "box-1");
	b = attachments_find(&all, "box-2");
	a->sandbox = sandbox_new(&supervisor, &a->owner, true);
	assert_non_null(a->sandbox);
	a->sandbox->state = SANDBOX_STARTING;
	b->detaching = true;
	attachments_reload_all(&all, on_done, NULL);
	assert_int_equal(answered.count, 1);
	assert_int_equal(answered.status, ATTACH_BUSY);
	assert_string_equal(answered.text, "box-1 is being attached");
	a->detaching = true;
	attachments_reload_all(&all, on_done, NULL);
	assert_int_equal(answered.status, ATTACH_OK);
	sandbox_free(a->sandbox);
	a->sandbox = NULL;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test_setup_teardown(one_more_than_there_may_be, set_up, tear_down),
	        cmocka_unit_test_setup_teardown(no_descriptors_for_another, set_up, tear_down),
	        cmocka_unit_test_setup_teardown(
	                one_operation_more_than_may_wait, set_up, tear_down),
	        cmocka_unit_test_setup_teardown(
	                more_that_have_ended_than_may_wait, set_up, tear_down),
	        cmocka_unit_test_setup_teardown(
	                prepared_ones_count_and_claims_do_not, set_up, tear_down),
	        cmocka_unit_test_setup_teardown(
	                sessions_are_counted_by_themselves, set_up, tear_down),
	        cmocka_unit_test_setup_teardown(
	                of_two_with_one_id_the_claim_counts, set_up, tear_down),
	        cmocka_unit_test_setup_teardown(only_a_reload_looks_at_the_ca, set_up, tear_down),
	        cmocka_unit_test_setup_teardown(what_a_prepared_one_cannot, set_up, tear_down),
	        cmocka_unit_test_setup_teardown(a_place_is_left_once, set_up, tear_down),
	        cmocka_unit_test_setup_teardown(a_sandbox_ends_with_its_time, set_up, tear_down),
	        cmocka_unit_test_setup_teardown(one_that_is_being_detached, set_up, tear_down),
	        cmocka_unit_test_setup_teardown(
	                all_while_one_is_attached_and_one_detached, set_up, tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
