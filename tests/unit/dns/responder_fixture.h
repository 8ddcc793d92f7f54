/* SPDX-License-Identifier: Apache-2.0 */
/* A responder with its policy, its names, and the last event it sent, on a loop of its own. */
#ifndef VETHGUARD_TESTS_UNIT_DNS_RESPONDER_FIXTURE_H
#define VETHGUARD_TESTS_UNIT_DNS_RESPONDER_FIXTURE_H

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "dns/private.h"
#include "vethguard/dns/responder.h"
#include "vethguard/policy/load.h"

static const char policy_text[] = "vethguard: 1\n"
                                  "name: test\n"
                                  "allow:\n"
                                  "  - name: api\n"
                                  "    to: https://api.example.com\n"
                                  "  - name: ssh\n"
                                  "    to: tcp://git.example.com:22\n"
                                  "  - name: files\n"
                                  "    to: https://*.files.example.com\n"
                                  "  - name: intranet\n"
                                  "    to: http://wiki\n"
                                  "  - name: mixed\n"
                                  "    to: tcp://mixed.example.com:22\n"
                                  "deny:\n"
                                  "  - name: never\n"
                                  "    to: https://bad.example.com\n"
                                  "  - name: not-that\n"
                                  "    to: https://mixed.example.com\n";

static inline int read_text(void *context, const char *path, char **text, size_t *n)
{
	(void)path;
	*text = strdup(context);
	*n = strlen(context);
	return *text ? 0 : -ENOMEM;
}

static struct {
	uint8_t *image;
	struct policy policy;
	const struct policy *in_force;
	struct names *names;
	struct loop *loop;
	struct responder *responder;

	size_t count;
	size_t hold_after; /* so many events; 0: never */
	struct event event;
	char host[300], rule[100], detail[200], search_domain[300];
} fixture;

static inline void on_query(void *context, struct event *event, struct slice search_domain)
{
	(void)context;
	snprintf(fixture.search_domain, sizeof(fixture.search_domain), "%.*s",
	        SLICE_ARG(search_domain));
	if (++fixture.count == fixture.hold_after)
		responder_hold(fixture.responder, true);
	fixture.event = *event;
	snprintf(fixture.host, sizeof(fixture.host), "%.*s", SLICE_ARG(event->host));
	snprintf(fixture.rule, sizeof(fixture.rule), "%.*s", SLICE_ARG(event->rule));
	snprintf(fixture.detail, sizeof(fixture.detail), "%.*s", SLICE_ARG(event->detail));
}

static inline int start(bool observe, uint32_t rate)
{
	static struct diag_list diags;
	struct policy_reader reader = {
	        .context = (void *)(uintptr_t)policy_text, .read = read_text};
	struct policy_load_options options = {.observe = observe};
	struct responder_config config = {.on_query = on_query, .queries_per_s = rate};
	struct ip_prefix pool4, pool6;
	size_t size;

	memset(&fixture, 0, sizeof(fixture));
	memset(&diags, 0, sizeof(diags));
	if (policy_load(&reader, "test.yaml", &options, &fixture.image, &size, &diags) < 0) {
		diag_print(&diags, stderr);
		return -1;
	}
	if (policy_open(&fixture.policy, fixture.image, size) < 0)
		return -1;
	ip_prefix_parse(SLICE("10.200.0.0/16"), &pool4);
	ip_prefix_parse(SLICE("fd00:1::/64"), &pool6);
	fixture.in_force = &fixture.policy;
	fixture.names = names_new(&pool4, &pool6, 100);
	fixture.loop = loop_new();
	config.policy = &fixture.in_force;
	config.names = fixture.names;
	config.loop = fixture.loop;
	fixture.responder = responder_new(&config);
	return fixture.responder ? 0 : -1;
}

static inline int setup(void **state)
{
	(void)state;
	return start(false, 100000);
}

static inline int setup_observe(void **state)
{
	(void)state;
	return start(true, 100000);
}

static inline int setup_slow(void **state)
{
	(void)state;
	return start(false, 3);
}

static inline int teardown(void **state)
{
	(void)state;
	responder_free(fixture.responder);
	names_free(fixture.names);
	loop_free(fixture.loop);
	free(fixture.image);
	return 0;
}

/* A query for name (labels split at dots) into out. */
static inline size_t make_query(uint8_t *out, const char *name, uint16_t type, uint16_t class)
{
	struct writer w = writer_over(out, 512);

	writer_bytes(&w, "\xab\xcd\1\0\0\1\0\0\0\0\0\0", 12);
	while (*name) {
		size_t n = strcspn(name, ".");

		writer_vector(&w, 1, slice_of(name, n));
		name += n + (name[n] == '.');
	}
	writer_u8(&w, 0);
	writer_u16(&w, type);
	writer_u16(&w, class);
	assert_false(w.failed);
	return w.len;
}

static inline void stop_loop(struct loop_timer *timer)
{
	loop_stop(timer->loop);
}

static inline void run_loop(int64_t ms)
{
	struct loop_timer timer = {0};

	assert_int_equal(loop_timer_open(fixture.loop, &timer, stop_loop), 0);
	loop_timer_set(&timer, ms);
	assert_int_equal(loop_run(fixture.loop), 0);
	loop_timer_close(&timer);
}

#define IN_LOOP(test) cmocka_unit_test_setup_teardown(test, setup, teardown)
#define SLOW(test) cmocka_unit_test_setup_teardown(test, setup_slow, teardown)

#endif
