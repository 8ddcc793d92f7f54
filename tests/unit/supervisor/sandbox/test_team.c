/* SPDX-License-Identifier: Apache-2.0 */
/* The linker wraps: role_send instance_ask_stats sandbox_fail outbox_observed */
/* Several workers of one sandbox: how many there are, their seats, what a dead one had open, and
 * how figures are added up. The rest is tested with whole daemons (test_workers.py). */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>
#include <utlist.h>

#include "../../policy/policy_test.h"
#include "supervisor/sandbox/states.h"
#include "supervisor/sandbox/team.h"
#include "supervisor/supervisor.h"

#define PLAIN "vethguard: 1\nallow: [{to: 'http://a.test'}]\n"
#define WITH_CREDENTIAL \
	"vethguard: 1\ncredentials: {c: {%s}}\nallow: [{to: 'https://a.test', credential: c}]\n"
#define WITH_TOOLS "vethguard: 1\nallow: [{to: 'https://a.test', mcp: {tools: [read]}}]\n"
#define MANY (TEAM_SEATS + 1)

static struct supervisor sv;

static struct message_worker_team told;
static unsigned tellings, asked, answers;
static int sent, sent_stats;
static uint64_t answered;
static struct message_worker_stats sum;

int __wrap_role_send(
        struct role *role, const uint8_t *message, size_t n, const int *fds, size_t count);
int __wrap_role_send(
        struct role *role, const uint8_t *message, size_t n, const int *fds, size_t count)
{
	struct message_head head;
	struct reader body;

	(void)role;
	assert_int_equal(message_open(message, n, &head, &body), 0);
	assert_int_equal(head.type, MESSAGE_WORKER_TEAM);
	assert_int_equal(message_worker_team_decode(&body, &told), 0);
	assert_int_equal(count, 1);
	assert_true(fcntl(fds[0], F_GETFD) >= 0);
	tellings++;
	return sent;
}

int __wrap_instance_ask_stats(struct instance *i, uint64_t id);
int __wrap_instance_ask_stats(struct instance *i, uint64_t id)
{
	(void)i;
	assert_int_not_equal(id, 0);
	asked++;
	return sent_stats;
}

static unsigned fails, findings;

void __wrap_sandbox_fail(struct sandbox *s, const char *format, ...);
void __wrap_sandbox_fail(struct sandbox *s, const char *format, ...)
{
	(void)s;
	assert_non_null(strstr(format, "too often"));
	fails++;
}

void __wrap_outbox_observed(struct supervisor *supervisor, struct sandbox *s,
        enum event_finding finding, const char *text);
void __wrap_outbox_observed(struct supervisor *supervisor, struct sandbox *s,
        enum event_finding finding, const char *text)
{
	(void)supervisor;
	(void)s;
	assert_int_equal(finding, EVENT_FINDING_ROLE_DIED);
	assert_non_null(strstr(text, "A further worker was killed. Another one is started"));
	findings++;
}

static void on_stats(
        struct sandbox_owner *owner, uint64_t id, const struct message_worker_stats *stats)
{
	(void)owner;
	answers++;
	answered = id;
	sum = *stats;
}

static struct sandbox_owner owner = {.stats = on_stats};

struct world {
	struct test_policy policy;
	struct settings settings;
	struct generation generation;
	struct instance workers[MANY];
	struct sandbox sandbox;
};

static void begin_with(struct world *w, const char *policy, uint32_t workers)
{
	struct sandbox *s = &w->sandbox;

	memset(w, 0, sizeof(*w));
	tellings = asked = answers = 0;
	sent = sent_stats = 0;
	test_load(&w->policy, policy, false);
	w->settings.policy = w->policy.policy;
	w->settings.config.workers = workers;
	w->generation = (struct generation){.refs = 1, .settings = &w->settings};
	s->supervisor = &sv;
	s->owner = &owner;
	s->persistent = true;
	s->state = SANDBOX_SERVING;
	s->generation = &w->generation;
}

static struct instance *add(struct world *w, unsigned i, bool further)
{
	struct instance *worker = &w->workers[i];

	worker->supervisor = &sv;
	worker->sandbox = &w->sandbox;
	worker->generation = &w->generation;
	worker->further = further;
	worker->state = INSTANCE_SERVING;
	DL_APPEND(w->sandbox.instances, worker);
	if (!further)
		w->sandbox.current = worker;
	return worker;
}

static void begin(struct world *w, unsigned count)
{
	begin_with(w, PLAIN, 4);
	assert_int_equal(team_make_memory(&w->sandbox, &w->generation), 0);
	for (unsigned i = 0; i < count; i++)
		assert_int_equal(team_tell(add(w, i, i > 0)), 0);
}

static void end(struct world *w)
{
	team_free(&w->sandbox);
	if (w->generation.has_team)
		close(w->generation.team);
	test_unload(&w->policy);
}

static struct team sit(const struct world *w, const struct instance *i)
{
	struct team team;

	assert_int_equal(team_open(&team, dup(w->generation.team), i->seat), 0);
	return team;
}

static uint32_t size_with(const char *policy, uint32_t workers)
{
	static struct world w;
	uint32_t size;

	begin_with(&w, policy, workers);
	size = team_size(&w.sandbox, &w.generation);
	end(&w);
	return size;
}

static uint32_t size_with_credential(const char *credential)
{
	char policy[512];

	snprintf(policy, sizeof(policy), WITH_CREDENTIAL, credential);
	return size_with(policy, 4);
}

static void how_many_there_are(void **state)
{
	(void)state;
	assert_int_equal(size_with(PLAIN, 0), 1);
	assert_int_equal(size_with(PLAIN, 1), 1);
	assert_int_equal(size_with(PLAIN, 4), 4);
	assert_int_equal(size_with(PLAIN, TEAM_WORKERS_MAX), TEAM_WORKERS_MAX);
	assert_int_equal(size_with_credential("source: 'env:A', inject: bearer"), 4);
	assert_int_equal(
	        size_with_credential("source: sealed, inject: placeholder, in: header"), 1);
}

static void rules_that_need_one(void **state)
{
	(void)state;
	assert_int_equal(size_with(WITH_TOOLS, 4), 1);
}

static void sandboxes_that_have_one(void **state)
{
	static const struct session_token token;
	static struct listen_socket listen;
	static struct world w;

	(void)state;
	begin_with(&w, PLAIN, 4);
	w.sandbox.persistent = false;
	assert_int_equal(team_size(&w.sandbox, &w.generation), 1);
	w.sandbox.persistent = true;
	w.sandbox.session = &token;
	assert_int_equal(team_size(&w.sandbox, &w.generation), 1);
	w.sandbox.session = NULL;
	w.sandbox.listen = &listen;
	assert_int_equal(team_size(&w.sandbox, &w.generation), 1);
	w.sandbox.listen = NULL;
	w.sandbox.shared_dns_port = 53;
	assert_int_equal(team_size(&w.sandbox, &w.generation), 1);
	/* Then nothing is made, and nobody is told anything. */
	assert_int_equal(team_make_memory(&w.sandbox, &w.generation), 0);
	assert_false(w.generation.has_team);
	assert_int_equal(team_tell(add(&w, 0, false)), 0);
	assert_false(w.workers[0].seated);
	assert_int_equal(tellings, 0);
	team_forget(&w.workers[0]);
	w.sandbox.shared_dns_port = 0;
	assert_int_equal(team_size(&w.sandbox, &w.generation), 4);
	end(&w);
}

static void each_has_a_seat_of_its_own(void **state)
{
	static struct world w;

	(void)state;
	begin(&w, TEAM_SEATS);
	assert_int_equal(tellings, TEAM_SEATS);
	assert_int_equal(told.seat, TEAM_SEATS - 1);
	assert_true(told.further);
	for (unsigned i = 0; i < TEAM_SEATS; i++)
		assert_int_equal(w.workers[i].seat, i);
	assert_int_equal(team_tell(add(&w, TEAM_SEATS, true)), -EAGAIN);
	assert_false(w.workers[TEAM_SEATS].seated);
	DL_DELETE(w.sandbox.instances, &w.workers[7]);
	team_forget(&w.workers[7]);
	assert_int_equal(team_tell(&w.workers[TEAM_SEATS]), 0);
	assert_int_equal(w.workers[TEAM_SEATS].seat, 7);
	end(&w);
}

/* Also if it was killed while it held something; what others have open stays. */
static void what_a_dead_one_had_open_counts_no_longer(void **state)
{
	static struct world w;
	struct team first, second;

	(void)state;
	begin(&w, 2);
	first = sit(&w, &w.workers[0]);
	second = sit(&w, &w.workers[1]);
	assert_true(team_enter(&first, 3, 2));
	assert_true(team_enter(&second, 3, 2));
	assert_false(team_enter(&first, 3, 2));
	team_forget(&w.workers[1]);
	assert_false(w.workers[1].seated);
	assert_int_equal(team_open_count(&first, 3), 1);
	assert_true(team_enter(&first, 3, 2));
	team_close(&first);
	team_close(&second);
	end(&w);
}

static void figures_are_added_up(void **state)
{
	static struct world w;
	const struct message_worker_stats one = {.generation = 5,
	                                          .connections = 3,
	                                          .connections_open = 1,
	                                          .names_kept = 7,
	                                          .kinds = {{1, 2, 3}}},
	                                  other = {.generation = 5,
	                                          .connections = 10,
	                                          .names_kept = 6,
	                                          .limits_met = 4,
	                                          .kinds = {{10, 20, 30}}};
	const struct instance stranger = {.generation = NULL, .seat = 0, .seated = true};

	(void)state;
	begin(&w, 2);
	assert_int_equal(sandbox_ask_stats(&w.sandbox, 9), 0);
	assert_int_equal(asked, 2);
	assert_false(team_take_stats(&w.sandbox, &stranger, 9, &one)); /* of another generation */
	assert_false(team_take_stats(&w.sandbox, &w.workers[0], 8, &one));
	assert_true(team_take_stats(&w.sandbox, &w.workers[1], 9, &other));
	assert_int_equal(answers, 0);
	assert_false(team_take_stats(&w.sandbox, &w.workers[1], 9, &other)); /* twice */
	assert_true(team_take_stats(&w.sandbox, &w.workers[0], 9, &one));
	assert_int_equal(answers, 1);
	assert_int_equal(answered, 9);
	assert_int_equal(sum.generation, 5);
	assert_int_equal(sum.connections, 13);
	assert_int_equal(sum.connections_open, 1);
	assert_int_equal(sum.names_kept, 7);
	assert_int_equal(sum.limits_met, 4);
	assert_int_equal(sum.kinds[0].allowed, 11);
	assert_int_equal(sum.kinds[0].denied, 22);
	assert_int_equal(sum.kinds[0].failed, 33);
	assert_false(team_take_stats(&w.sandbox, &w.workers[0], 9, &one));
	end(&w);
}

/* Who asked gets what the others have done. */
static void one_dies_that_was_asked(void **state)
{
	static struct world w;
	const struct message_worker_stats one = {.connections = 3};

	(void)state;
	begin(&w, 2);
	assert_int_equal(sandbox_ask_stats(&w.sandbox, 9), 0);
	assert_int_equal(sandbox_ask_stats(&w.sandbox, 10), 0);
	assert_true(team_take_stats(&w.sandbox, &w.workers[0], 9, &one));
	assert_int_equal(answers, 0);
	team_forget(&w.workers[1]);
	assert_int_equal(answers, 1);
	assert_int_equal(answered, 9);
	assert_int_equal(sum.connections, 3);
	team_forget(&w.workers[0]);
	assert_int_equal(answers, 2);
	assert_int_equal(answered, 10);
	assert_int_equal(sum.connections, 0);
	end(&w);
}

static void none_can_be_asked(void **state)
{
	static struct world w;

	(void)state;
	begin(&w, 2);
	sent_stats = -EPIPE;
	assert_int_equal(sandbox_ask_stats(&w.sandbox, 9), -EPIPE);
	sent_stats = 0;
	assert_int_equal(sandbox_ask_stats(&w.sandbox, 10), 0);
	end(&w); /* with the question */
	assert_int_equal(answers, 0);
}

/* Whichever they are, deaths of workers count together: several workers are not several chances. */
static void too_many_deaths_close_it(void **state)
{
	static struct world w;

	(void)state;
	begin(&w, 2);
	fails = findings = 0;
	for (unsigned i = 0; i < SANDBOX_DEATHS_MAX / 2; i++)
		assert_true(sandbox_delay_after_death(&w.sandbox) >= 0); /* the first one's */
	for (unsigned i = 0; i < SANDBOX_DEATHS_MAX / 2; i++)
		team_member_died(&w.sandbox, "was killed");
	assert_int_equal(findings, SANDBOX_DEATHS_MAX / 2);
	assert_int_equal(w.sandbox.restarts, SANDBOX_DEATHS_MAX / 2);
	assert_int_equal(fails, 0);
	team_member_died(&w.sandbox, "was killed");
	assert_int_equal(fails, 1);
	assert_int_equal(findings, SANDBOX_DEATHS_MAX / 2);
	end(&w);
}

static int set_up(void **state)
{
	(void)state;
	sv.loop = loop_new();
	return !sv.loop;
}

static int tear_down(void **state)
{
	(void)state;
	loop_free(sv.loop);
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(how_many_there_are),
	        cmocka_unit_test(rules_that_need_one),
	        cmocka_unit_test(sandboxes_that_have_one),
	        cmocka_unit_test(each_has_a_seat_of_its_own),
	        cmocka_unit_test(what_a_dead_one_had_open_counts_no_longer),
	        cmocka_unit_test(figures_are_added_up),
	        cmocka_unit_test(one_dies_that_was_asked),
	        cmocka_unit_test(none_can_be_asked),
	        cmocka_unit_test(too_many_deaths_close_it),
	};

	return cmocka_run_group_tests(tests, set_up, tear_down);
}
