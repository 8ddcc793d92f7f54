/* SPDX-License-Identifier: Apache-2.0 */
/* The host's listeners for exposed ports: opened, kept, closed; and why they are refused. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <net/if.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "../../policy/policy_test.h"
#include "supervisor/supervisor.h"

#define PAGE "{port: 1, from: host, at: \"127.0.0.1:18080\"}"
#define OTHER "{port: 2, from: host, at: \"127.0.0.1:18081\"}"
#define SIX "{port: 3, from: host, at: \"[::1]:18080\"}"
#define ALL_ADDRESSES "{port: 1, from: host, at: \"0.0.0.0:18080\"}"
#define NOT_HERE "{port: 1, from: host, at: \"192.0.2.7:18080\"}"
#define LOW "{port: 1, from: host, at: \"127.0.0.1:80\"}"
#define CALLED "{port: 1, from: \"sandbox:x\"}"

static struct supervisor sv;
static struct sandbox_owner owner;

/* A generation of a policy that exposes this. Its references never free it. */
struct exposing {
	struct test_policy policy;
	struct settings settings;
	struct generation generation;
};

static void exposing(struct exposing *x, const char *entries)
{
	char text[1024] = "vethguard: 1\n";

	memset(x, 0, sizeof(*x));
	if (entries[0])
		snprintf(text, sizeof(text), "vethguard: 1\nexpose: [%s]\n", entries);
	test_load(&x->policy, text, false);
	x->settings.policy = x->policy.policy;
	x->generation = (struct generation){.refs = 1000, .settings = &x->settings};
	x->generation.identity = (struct identity){.uid = geteuid(), .gid = getegid()};
}

static struct sandbox *one(const char *name, struct exposing *x)
{
	struct sandbox *s = sandbox_new(&sv, &owner, true);

	assert_non_null(s);
	snprintf(s->name, sizeof(s->name), "%s", name);
	s->generation = &x->generation;
	s->gate.kind = GATE_VETH;
	return s;
}

static bool listens(const char *address, uint16_t port)
{
	struct sockaddr_storage ss;
	struct ip ip;
	socklen_t n;
	int fd;
	bool yes;

	assert_true(ip_parse(slice_from_string(address), &ip));
	n = ip_to_sockaddr(&ip, port, &ss);
	fd = socket(ss.ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
	yes = connect(fd, (struct sockaddr *)&ss, n) == 0;
	close(fd);
	return yes;
}

static void refused(struct sandbox *s, const struct exposing *x, int error, enum gate_fault fault,
        const char *words)
{
	s->failure[0] = 0;
	assert_int_equal(sandbox_expose(s, &x->generation), error);
	assert_int_equal(s->fault, fault);
	if (!strstr(s->failure, words))
		fail_msg("\"%s\" does not say \"%s\"", s->failure, words);
}

static void test_opened_and_closed(void **state)
{
	struct exposing x;
	struct sandbox *s;

	(void)state;
	exposing(&x, PAGE ", " OTHER ", " SIX);
	s = one("one", &x);
	assert_int_equal(sandbox_expose(s, &x.generation), 0);
	assert_int_equal(sandbox_expose(s, &x.generation), 0); /* nothing twice */
	assert_int_equal(s->exposed.count, 3);
	assert_true(listens("127.0.0.1", 18080) && listens("127.0.0.1", 18081));
	assert_true(listens("::1", 18080));
	assert_false(listens("127.0.0.2", 18080));
	sandbox_expose_close(s);
	assert_false(listens("127.0.0.1", 18080) || listens("::1", 18080));
	sandbox_free(s);
	test_unload(&x.policy);
}

/* A port that only sandboxes call has no listener. */
static void test_no_listener(void **state)
{
	struct exposing x;
	struct sandbox *s;

	(void)state;
	exposing(&x, CALLED);
	s = one("one", &x);
	assert_int_equal(sandbox_expose(s, &x.generation), 0);
	assert_int_equal(s->exposed.count, 0);
	sandbox_free(s);
	test_unload(&x.policy);
}

/* A listener that the next policy does not have is closed, but not before that policy is in force.
 */
static void test_trimmed(void **state)
{
	struct exposing before, next;
	struct instance successor = {.generation = &next.generation};
	struct sandbox *s;

	(void)state;
	exposing(&before, PAGE);
	exposing(&next, OTHER);
	s = one("one", &before);
	assert_int_equal(sandbox_expose(s, &before.generation), 0);
	assert_int_equal(sandbox_expose(s, &next.generation), 0);
	s->successor = &successor;
	sandbox_expose_trim(s);
	assert_true(listens("127.0.0.1", 18080) && listens("127.0.0.1", 18081));
	s->successor = NULL;
	sandbox_expose_trim(s);
	assert_true(listens("127.0.0.1", 18080) && !listens("127.0.0.1", 18081));
	assert_int_equal(sandbox_expose(s, &next.generation), 0);
	s->generation = &next.generation;
	sandbox_expose_trim(s);
	assert_false(listens("127.0.0.1", 18080));
	assert_true(listens("127.0.0.1", 18081));
	sandbox_free(s);
	assert_false(listens("127.0.0.1", 18081));
	test_unload(&before.policy);
	test_unload(&next.policy);
}

static void test_taken(void **state)
{
	struct exposing x, all;
	struct sandbox *s, *other;

	(void)state;
	exposing(&x, PAGE);
	exposing(&all, ALL_ADDRESSES);
	s = one("one", &x);
	other = one("two", &x);
	assert_int_equal(sandbox_expose(s, &x.generation), 0);
	refused(other, &x, -EADDRINUSE, GATE_FAULT_TAKEN, "sandbox one listens there already");
	refused(other, &all, -EADDRINUSE, GATE_FAULT_TAKEN, "sandbox one listens there already");
	refused(s, &all, -EADDRINUSE, GATE_FAULT_TAKEN, "remove that entry and reload");
	sandbox_expose_close(s);
	assert_int_equal(sandbox_expose(other, &all.generation), 0);
	refused(s, &x, -EADDRINUSE, GATE_FAULT_TAKEN, "sandbox two listens there already");
	sandbox_free(s);
	sandbox_free(other);
	test_unload(&x.policy);
	test_unload(&all.policy);
}

static void test_refused(void **state)
{
	static const struct {
		enum gate_kind kind;
		const char *words;
	} kinds[] = {{GATE_SOCKET, "a Unix socket has no address"},
	        {GATE_SHARED, "a sidecar has no right"},
	        {GATE_DIVERT, "attach the one container or machine with --address"}};
	struct exposing x, away, none;
	struct sandbox *s;

	(void)state;
	exposing(&x, PAGE);
	exposing(&away, NOT_HERE);
	exposing(&none, "");
	s = one("one", &x);
	refused(s, &away, -EADDRNOTAVAIL, GATE_FAULT_ASKED, "does not have that address");
	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
		s->gate.kind = kinds[i].kind;
		refused(s, &x, -EOPNOTSUPP, GATE_FAULT_ASKED, kinds[i].words);
		assert_int_equal(sandbox_expose(s, &none.generation), 0);
	}
	s->gate.sandbox4 = (struct ip){4, {10, 0, 0, 2}};
	assert_int_equal(sandbox_expose(s, &x.generation), 0); /* one machine behind an interface */
	sandbox_free(s);
	test_unload(&x.policy);
	test_unload(&away.policy);
	test_unload(&none.policy);
}

/* The daemon lends no user its right to the low ports. */
static void test_another_user(void **state)
{
	struct exposing x;
	struct sandbox *s;

	(void)state;
	if (geteuid() != 0) {
		print_message("skipped: only root can be another user\n");
		skip();
	}
	exposing(&x, LOW);
	x.generation.identity = (struct identity){.uid = 65534, .gid = 65534};
	s = one("one", &x);
	refused(s, &x, -EACCES, GATE_FAULT_ASKED, "may not use that port");
	x.generation.identity.lends = true; /* run by sudo, of which that user is the caller */
	assert_int_equal(sandbox_expose(s, &x.generation), 0);
	sandbox_free(s);
	test_unload(&x.policy);
}

static void on_stop(struct loop_timer *timer)
{
	loop_stop(timer->loop);
}

/* A sandbox that exists is served without, and gets its listener when the place is free. */
static void test_again(void **state)
{
	struct loop_timer stop = {0};
	struct exposing x;
	struct sandbox *s, *other;

	(void)state;
	exposing(&x, PAGE);
	s = one("one", &x);
	other = one("two", &x);
	assert_int_equal(sandbox_expose(other, &x.generation), 0);
	snprintf(s->failure, sizeof(s->failure), "as before");
	sandbox_expose_again(s);
	assert_string_equal(s->failure, "as before");
	assert_int_equal(s->exposed.count, 0);
	sandbox_expose_close(other);
	assert_int_equal(loop_timer_open(sv.loop, &stop, on_stop), 0);
	for (unsigned i = 0; i < 1000 && s->exposed.count == 0; i++) {
		loop_timer_set(&stop, 10);
		assert_int_equal(loop_run(sv.loop), 0);
	}
	assert_int_equal(s->exposed.count, 1);
	assert_int_equal(s->exposed.pause_ms, 0);
	loop_timer_close(&stop);
	sandbox_free(s);
	sandbox_free(other);
	test_unload(&x.policy);
}

static int set_up(void **state)
{
	struct ifreq lo = {.ifr_name = "lo"};
	int fd;

	(void)state;
	if (unshare(CLONE_NEWNET) < 0 && unshare(CLONE_NEWUSER | CLONE_NEWNET) < 0)
		return -1;
	lo.ifr_flags = IFF_UP;
	fd = socket(AF_INET, SOCK_DGRAM, 0);
	ioctl(fd, SIOCSIFFLAGS, &lo);
	close(fd);
	sv.loop = loop_new();
	sv.mounts = sv.names = -1;
	return sv.loop ? 0 : -1;
}

static int tear_down(void **state)
{
	(void)state;
	assert_null(sv.sandboxes);
	recording_fini(&sv);
	loop_free(sv.loop);
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(test_opened_and_closed),
	        cmocka_unit_test(test_no_listener),
	        cmocka_unit_test(test_trimmed),
	        cmocka_unit_test(test_taken),
	        cmocka_unit_test(test_refused),
	        cmocka_unit_test(test_another_user),
	        cmocka_unit_test(test_again),
	};

	return cmocka_run_group_tests(tests, set_up, tear_down);
}
