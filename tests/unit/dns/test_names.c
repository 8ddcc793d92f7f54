/* SPDX-License-Identifier: Apache-2.0 */
/* names: stable synthetic addresses, and which names may lose theirs to another name. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

#include "vethguard/base/clock.h"
#include "vethguard/base/hash.h"
#include "vethguard/dns/responder.h"
#include "vethguard/ipc/shared_names.h"

#define KEEP_MS (2 * RESPONDER_TTL_S * 1000)

static struct names *make(const char *pool4, const char *pool6, uint32_t limit)
{
	struct ip_prefix p4, p6;
	struct names *names;

	assert_true(ip_prefix_parse(slice_from_string(pool4), &p4));
	assert_true(ip_prefix_parse(slice_from_string(pool6), &p6));
	names = names_new(&p4, &p6, limit);
	assert_non_null(names);
	return names;
}

static struct ip ip_of(const char *text)
{
	struct ip ip;

	assert_true(ip_parse(slice_from_string(text), &ip));
	return ip;
}

static void assign(
        struct names *names, const char *host, int64_t now, const char *v4, const char *v6)
{
	struct ip a4, a6;
	char text[IP_TEXT_MAX];

	assert_int_equal(names_assign(names, slice_from_string(host), now, &a4, &a6), 0);
	assert_string_equal(ip_format(&a4, text), v4);
	assert_string_equal(ip_format(&a6, text), v6);
}

static void finds(struct names *names, const char *address, const char *host)
{
	struct ip ip = ip_of(address);
	struct slice found;

	if (!host) {
		assert_false(names_lookup(names, &ip, &found));
		return;
	}
	assert_true(names_lookup(names, &ip, &found));
	assert_true(slice_equals(found, slice_from_string(host)));
}

static void addresses_are_stable(void **state)
{
	struct names *names = make("10.200.0.0/16", "fd00:1::/64", 1000);

	(void)state;
	assign(names, "a.example", 1, "10.200.1.0", "fd00:1::100");
	assign(names, "b.example", 2, "10.200.1.1", "fd00:1::101");
	assign(names, "a.example", 3, "10.200.1.0", "fd00:1::100");
	finds(names, "10.200.1.0", "a.example");
	finds(names, "fd00:1::101", "b.example");
	finds(names, "10.200.1.2", NULL);
	finds(names, "fd00:1::102", NULL);
	names_free(names);
}

static void only_own_addresses_are_synthetic(void **state)
{
	static const struct {
		const char *address;
		bool synthetic;
	} rows[] = {
	        {"10.200.0.0", false},
	        {"10.200.0.1", false},
	        {"10.200.0.255", false},
	        {"10.200.1.0", true},
	        {"10.200.255.255", true},
	        {"10.201.0.0", false},
	        {"10.199.255.255", false},
	        {"8.8.8.8", false},
	        {"fd00:1::", false},
	        {"fd00:1::ff", false},
	        {"fd00:1::100", true},
	        {"fd00:1::1:0:0:0", true},
	        {"fd00:1::ffff:ffff:ffff:ffff", true},
	        {"fd00:1:0:1::100", false},
	        {"::ffff:10.200.1.0", false},
	};
	struct names *names = make("10.200.0.0/16", "fd00:1::/64", 1000);
	struct ip none = {0};
	struct slice host;

	(void)state;
	assign(names, "a.example", 1, "10.200.1.0", "fd00:1::100");
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct ip ip = ip_of(rows[i].address);

		if (names_is_synthetic(names, &ip) != rows[i].synthetic)
			fail_msg("%s", rows[i].address);
		if (strcmp(rows[i].address, "10.200.1.0") != 0 &&
		        strcmp(rows[i].address, "fd00:1::100") != 0)
			finds(names, rows[i].address, NULL);
	}
	assert_false(names_is_synthetic(names, &none));
	assert_false(names_lookup(names, &none, &host));
	names_hold(names, &none);
	names_release(names, &none);
	names_free(names);
}

static void refuses_what_is_no_host(void **state)
{
	struct names *names = make("10.200.0.0/16", "fd00:1::/64", 1000);
	static char huge[300];
	struct ip a, b;

	(void)state;
	memset(huge, 'a', sizeof(huge));
	assert_int_equal(names_assign(names, SLICE(""), 1, &a, &b), -EINVAL);
	assert_int_equal(names_assign(names, slice_of(huge, 254), 1, &a, &b), -EINVAL);
	assert_int_equal(names_assign(names, slice_of(huge, 253), 1, &a, &b), 0);
	names_free(names);
}

static void the_longest_idle_goes_first(void **state)
{
	struct names *names = make("10.200.0.0/16", "fd00:1::/64", 3);
	struct ip a, b;

	(void)state;
	assign(names, "a", 0, "10.200.1.0", "fd00:1::100");
	assign(names, "b", 1000, "10.200.1.1", "fd00:1::101");
	assign(names, "c", 2000, "10.200.1.2", "fd00:1::102");
	/* All were asked too lately. */
	assert_int_equal(names_assign(names, SLICE("d"), KEEP_MS - 1, &a, &b), -ENOSPC);
	finds(names, "10.200.1.0", "a");
	assign(names, "d", KEEP_MS, "10.200.1.0", "fd00:1::100");
	finds(names, "10.200.1.0", "d");
	finds(names, "fd00:1::100", "d");
	/* Asking again makes b younger than c. */
	assign(names, "b", KEEP_MS + 1, "10.200.1.1", "fd00:1::101");
	assign(names, "a", KEEP_MS + 2000, "10.200.1.2", "fd00:1::102");
	finds(names, "10.200.1.1", "b");
	names_free(names);
}

static void held_names_stay(void **state)
{
	struct names *names = make("10.200.0.0/16", "fd00:1::/64", 2);
	struct ip a4 = ip_of("10.200.1.0"), a6 = ip_of("fd00:1::100");
	struct ip x, y;

	(void)state;
	assign(names, "a", 0, "10.200.1.0", "fd00:1::100");
	assign(names, "b", 0, "10.200.1.1", "fd00:1::101");
	names_hold(names, &a4);
	names_hold(names, &a6); /* one name, either address */
	assign(names, "c", 10 * KEEP_MS, "10.200.1.1", "fd00:1::101");
	assert_int_equal(names_assign(names, SLICE("d"), 10 * KEEP_MS + 1, &x, &y), -ENOSPC);
	names_release(names, &a4);
	assert_int_equal(names_assign(names, SLICE("d"), 10 * KEEP_MS + 2, &x, &y), -ENOSPC);
	names_release(names, &a6);
	/* A name released just now counts as asked just now. */
	assert_int_equal(names_assign(names, SLICE("d"), 11 * KEEP_MS + 1, &x, &y), 0);
	finds(names, "10.200.1.0", "a"); /* c was idle for longer */
	finds(names, "10.200.1.1", "d");
	assert_int_equal(names_assign(names, SLICE("e"), 11 * KEEP_MS + 1, &x, &y), -ENOSPC);
	assign(names, "e", 11 * KEEP_MS + 2, "10.200.1.0", "fd00:1::100");
	/* One release too many does no harm. */
	names_release(names, &a4);
	names_release(names, &a4);
	assign(names, "e", 11 * KEEP_MS + 3, "10.200.1.0", "fd00:1::100");
	names_free(names);
}

static void asking_for_a_held_name_keeps_it(void **state)
{
	struct names *names = make("10.200.0.0/16", "fd00:1::/64", 1);
	struct ip a4 = ip_of("10.200.1.0");
	struct ip x, y;

	(void)state;
	assign(names, "a", 0, "10.200.1.0", "fd00:1::100");
	names_hold(names, &a4);
	assign(names, "a", KEEP_MS, "10.200.1.0", "fd00:1::100");
	assert_int_equal(names_assign(names, SLICE("b"), 9 * KEEP_MS, &x, &y), -ENOSPC);
	names_release(names, &a4);
	assign(names, "b", 10 * KEEP_MS, "10.200.1.0", "fd00:1::100");
	names_free(names);
}

static void small_pools(void **state)
{
	struct names *names = make("10.200.0.0/24", "fd00:1::/64", 100);
	struct ip a, b;

	(void)state;
	assert_int_equal(names_assign(names, SLICE("a"), 1, &a, &b), -ENOSPC);
	names_free(names);
	names = make("10.200.0.0/23", "fd00:1::/64", UINT32_MAX);
	for (int i = 0; i < 255; i++) {
		char host[24];

		snprintf(host, sizeof(host), "h%d", i);
		assert_int_equal(names_assign(names, slice_from_string(host), 1, &a, &b), 0);
		assert_int_equal(a.bytes[2], 1);
		assert_int_equal(a.bytes[3], i); /* never the broadcast address */
	}
	assert_int_equal(names_assign(names, SLICE("more"), 1, &a, &b), -ENOSPC);
	names_free(names);
	names = make("10.200.0.0/16", "fd00:1::/64", 0);
	assert_int_equal(names_assign(names, SLICE("a"), 1, &a, &b), -ENOSPC);
	names_free(names);
	names_free(NULL);
}

/* A sandbox that asks for ever new names gets the addresses there are, and each answer stays true.
 */
static void many_names(void **state)
{
	struct names *names = make("10.0.0.0/8", "fd00:1::/64", 20000);
	struct ip a, b;
	char host[32];

	(void)state;
	for (int i = 0; i < 30000; i++) {
		struct slice found;

		snprintf(host, sizeof(host), "name-%d.example", i);
		if (names_assign(names, slice_from_string(host), i < 20000 ? 0 : KEEP_MS, &a, &b) !=
		        0)
			fail_msg("name %d", i);
		assert_true(names_lookup(names, &a, &found));
		assert_true(slice_equals(found, slice_from_string(host)));
		assert_true(names_lookup(names, &b, &found));
		assert_true(slice_equals(found, slice_from_string(host)));
	}
	names_free(names);
}

/* --- handed from worker to worker --- */

static struct names *make_shared(int memory, uint32_t limit, int64_t now, uint32_t dropped)
{
	struct names *names = make("10.200.0.0/16", "fd00:1::/64", limit);
	uint32_t found;

	assert_int_equal(names_share(names, dup(memory), now, &found), 0);
	assert_int_equal(found, dropped);
	return names;
}

static void the_next_worker_knows_them(void **state)
{
	int memory = shared_names_create(3);
	struct names *names = make_shared(memory, 100, 0, 0);
	struct ip a, b;

	(void)state;
	assign(names, "a.test", 1, "10.200.1.0", "fd00:1::100");
	assign(names, "b.test", 2, "10.200.1.1", "fd00:1::101");
	assign(names, "c.test", 3, "10.200.1.2", "fd00:1::102");
	assign(names, "a.test", 4, "10.200.1.0", "fd00:1::100");
	assert_int_equal(names_assign(names, SLICE("d.test"), 5, &a, &b), -ENOSPC);
	names_free(names); /* as good as killed: nothing is written at the end */
	names = make_shared(memory, 100, 1000, 0);
	assert_int_equal(names_count(names), 3);
	finds(names, "10.200.1.0", "a.test");
	finds(names, "fd00:1::101", "b.test");
	assign(names, "c.test", 1000, "10.200.1.2", "fd00:1::102");
	/* As if all had been asked when it began, in their old order. */
	assert_int_equal(names_assign(names, SLICE("d.test"), 999 + KEEP_MS, &a, &b), -ENOSPC);
	assign(names, "d.test", 1000 + KEEP_MS, "10.200.1.1", "fd00:1::101");
	assign(names, "e.test", 1000 + KEEP_MS, "10.200.1.0", "fd00:1::100");
	names_free(names);
	names = make_shared(memory, 100, 2000, 0);
	finds(names, "10.200.1.1", "d.test");
	finds(names, "10.200.1.0", "e.test");
	names_free(names);
	close(memory);
}

/* One that retires and one that begins serve the same sandbox for a while. */
static void two_workers_agree(void **state)
{
	int memory = shared_names_create(5);
	struct names *old = make_shared(memory, 5, 0, 0), *new;
	struct ip held = ip_of("10.200.1.0");
	struct ip a, b;

	(void)state;
	assign(old, "a.test", 1, "10.200.1.0", "fd00:1::100");
	names_hold(old, &held);
	new = make_shared(memory, 5, 2, 0);
	assign(old, "b.test", 3, "10.200.1.1", "fd00:1::101");
	assign(new, "c.test", 4, "10.200.1.2", "fd00:1::102");
	assign(old, "d.test", 5, "10.200.1.3", "fd00:1::103");
	finds(new, "10.200.1.1", "b.test");
	finds(new, "fd00:1::103", "d.test");
	finds(old, "10.200.1.2", "c.test");
	assign(new, "b.test", 6, "10.200.1.1", "fd00:1::101");
	/* Only the newer one gives an address away. What the other knew of it stays as it was. */
	assign(new, "e.test", 7, "10.200.1.4", "fd00:1::104");
	assert_int_equal(names_assign(old, SLICE("f.test"), 2 * KEEP_MS, &a, &b), -ENOSPC);
	assign(new, "f.test", 2 * KEEP_MS, "10.200.1.0", "fd00:1::100");
	finds(old, "10.200.1.0", "a.test");
	names_release(old, &held);
	names_free(old);
	finds(new, "10.200.1.0", "f.test");
	names_free(new);
	close(memory);
}

/* Both were asked for the same name before either knew of the other's answer. */
static void a_name_with_two_addresses(void **state)
{
	int memory = shared_names_create(2);
	struct names *old = make_shared(memory, 2, 0, 0), *new = make_shared(memory, 2, 0, 0);

	(void)state;
	assign(old, "a.test", 1, "10.200.1.0", "fd00:1::100");
	assign(new, "a.test", 1, "10.200.1.1", "fd00:1::101");
	finds(new, "10.200.1.0", "a.test");
	finds(new, "10.200.1.1", "a.test");
	names_free(old);
	names_free(new);
	new = make_shared(memory, 2, 2, 0);
	finds(new, "10.200.1.0", "a.test");
	finds(new, "10.200.1.1", "a.test");
	assign(new, "a.test", 3, "10.200.1.0", "fd00:1::100");
	assign(new, "b.test", 2 + KEEP_MS, "10.200.1.1", "fd00:1::101");
	assign(new, "a.test", 3 + KEEP_MS, "10.200.1.0", "fd00:1::100");
	names_free(new);
	close(memory);
}

/* A worker that was taken over left this behind. */
static void garbage_is_dropped(void **state)
{
	static const char *const bad[] = {"", "UPPER.test", "a..b", "10.0.0.1", "trailing.",
	        "sp ace.test", "\x1b[2J", "nul\0x"};
	enum { BAD = sizeof(bad) / sizeof(bad[0]) };
	int memory = shared_names_create(BAD + 1);
	struct shared_names raw;
	struct names *names;
	struct ip a, b;
	uint32_t index;

	(void)state;
	assert_int_equal(shared_names_open(&raw, dup(memory)), 0);
	for (uint32_t i = 0; i < BAD; i++) {
		size_t n = i == BAD - 1 ? 5 : strlen(bad[i]);

		assert_int_equal(shared_names_claim(&raw, &index), 0);
		shared_names_put(&raw, index, slice_of(bad[i], n), INT64_MAX);
	}
	assert_int_equal(shared_names_claim(&raw, &index), 0);
	shared_names_put(&raw, index, SLICE("good.test"), INT64_MIN);
	names = make_shared(memory, 100, 1000, BAD);
	finds(names, "10.200.1.0", NULL);
	finds(names, "10.200.1.8", "good.test");
	assert_int_equal(names_assign(names, SLICE("new.test"), 1001, &a, &b), -ENOSPC);
	/* The file does not use up addresses for ever. */
	names_hold(names, &(struct ip){4, {10, 200, 1, 8}});
	for (int i = 0; i < BAD; i++) {
		char host[24];

		snprintf(host, sizeof(host), "n%d.test", i);
		assert_int_equal(
		        names_assign(names, slice_from_string(host), 1000 + KEEP_MS, &a, &b), 0);
		finds(names, "10.200.1.8", "good.test");
	}
	names_free(names);
	shared_names_close(&raw);
	close(memory);
}

static void noise_does_no_harm(void **state)
{
	enum { LIMIT = 16 };
	int memory = shared_names_create(LIMIT);
	size_t bytes = shared_names_bytes(LIMIT);
	uint8_t *p = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, memory, 0);
	struct ip a, b;
	uint32_t dropped;

	(void)state;
	assert_true(p != MAP_FAILED);
	for (int round = 0; round < 200; round++) {
		struct names *names = make("10.200.0.0/16", "fd00:1::/64", LIMIT);

		random_bytes(p, bytes);
		assert_int_equal(names_share(names, dup(memory), 0, &dropped), 0);
		for (int i = 0; i < 40; i++) {
			struct slice found;
			char host[24];

			if (i % 8 == 7) /* while it works, too */
				random_bytes(p, bytes);
			snprintf(host, sizeof(host), "n%d.test", i);
			if (names_assign(names, slice_from_string(host), (int64_t)i * KEEP_MS, &a,
			            &b) == 0) {
				assert_true(names_lookup(names, &a, &found));
				assert_true(slice_equals(found, slice_from_string(host)));
			}
		}
		assert_true(names_count(names) <= LIMIT);
		names_free(names);
	}
	munmap(p, bytes);
	close(memory);
}

static struct names *make_follower(int memory, uint32_t limit, int64_t now)
{
	struct names *names = make("10.200.0.0/16", "fd00:1::/64", limit);
	uint32_t dropped;

	assert_int_equal(names_follow(names, dup(memory), now, &dropped), 0);
	return names;
}

/* What the first worker gives out before and after a follower begins, also again to another name.
 */
static void a_follower_knows_the_first_ones_names(void **state)
{
	int memory = shared_names_create(2);
	struct names *first = make_shared(memory, 2, 0, 0), *follower;
	struct ip unknown = ip_of("10.200.1.1"), a, b;
	struct slice host;

	(void)state;
	assign(first, "a.test", 1, "10.200.1.0", "fd00:1::100");
	follower = make_follower(memory, 2, 2);
	finds(follower, "10.200.1.0", "a.test");
	assert_false(names_lookup(follower, &unknown, &host));
	assign(first, "b.test", 3, "10.200.1.1", "fd00:1::101");
	finds(follower, "fd00:1::101", "b.test");
	assign(first, "c.test", 1 + KEEP_MS, "10.200.1.0", "fd00:1::100");
	finds(follower, "10.200.1.0", "c.test");
	finds(follower, "fd00:1::100", "c.test");
	finds(follower, "10.200.1.1", "b.test");
	/* It gives out none itself. */
	assert_int_equal(names_assign(follower, SLICE("d.test"), 9 * KEEP_MS, &a, &b), -ENOSPC);
	names_free(follower);
	assign(first, "d.test", 9 * KEEP_MS, "10.200.1.1", "fd00:1::101");
	names_free(first);
	close(memory);
}

/* The first worker gives no address away that a connection of a follower uses. */
static void what_a_follower_holds_stays(void **state)
{
	int memory = shared_names_create(2);
	const int64_t now = clock_monotonic_ms();
	struct names *first = make_shared(memory, 2, now, 0);
	struct names *follower = make_follower(memory, 2, now);
	struct ip held = ip_of("10.200.1.0"), a, b;

	(void)state;
	assign(first, "a.test", now - 5, "10.200.1.0", "fd00:1::100");
	assign(first, "b.test", now - 4, "10.200.1.1", "fd00:1::101");
	names_hold(follower, &held);
	assign(first, "c.test", now - 4 + KEEP_MS, "10.200.1.1", "fd00:1::101");
	assert_int_equal(names_assign(first, SLICE("d.test"), now + KEEP_MS, &a, &b), -ENOSPC);
	for (int i = 1; i <= 4; i++) { /* while it goes on saying so */
		names_keep_held(follower, now + i * KEEP_MS);
		assign(first, "c.test", now + i * KEEP_MS, "10.200.1.1", "fd00:1::101");
		assert_int_equal(
		        names_assign(first, SLICE("d.test"), now + i * KEEP_MS + 1, &a, &b),
		        -ENOSPC);
	}
	finds(follower, "10.200.1.0", "a.test");
	names_release(follower, &held);
	assign(first, "c.test", now + 6 * KEEP_MS, "10.200.1.1", "fd00:1::101");
	assign(first, "d.test", now + 6 * KEEP_MS, "10.200.1.0", "fd00:1::100");
	finds(follower, "10.200.1.0", "d.test");
	names_free(follower);
	names_free(first);
	close(memory);
}

/* A hostile worker cannot keep addresses for ever. */
static void times_to_come_keep_nothing(void **state)
{
	int memory = shared_names_create(1);
	struct names *first = make_shared(memory, 1, 0, 0);
	struct shared_names hostile;

	(void)state;
	assert_int_equal(shared_names_watch(&hostile, dup(memory)), 0);
	assign(first, "a.test", 1, "10.200.1.0", "fd00:1::100");
	shared_names_asked(&hostile, 0, INT64_MAX);
	assign(first, "b.test", 1 + KEEP_MS, "10.200.1.0", "fd00:1::100");
	shared_names_asked(&hostile, 0, 4 * KEEP_MS);
	assign(first, "c.test", 3 * KEEP_MS, "10.200.1.0", "fd00:1::100");
	shared_names_asked(&hostile, 0, INT64_MIN);
	assign(first, "d.test", 5 * KEEP_MS, "10.200.1.0", "fd00:1::100");
	shared_names_close(&hostile);
	names_free(first);
	close(memory);
}

/* A writer that was killed, or is hostile, leaves an entry that is no name: it is unknown until it
 * is one. */
static void a_follower_reads_again_what_was_no_name(void **state)
{
	int memory = shared_names_create(2);
	struct names *follower = make_follower(memory, 2, 0);
	struct ip address = ip_of("10.200.1.0");
	struct shared_names writer;
	struct slice host;
	uint32_t index;

	(void)state;
	assert_int_equal(shared_names_open(&writer, dup(memory)), 0);
	assert_int_equal(shared_names_claim(&writer, &index), 0);
	assert_false(names_lookup(follower, &address, &host)); /* claimed, not written yet */
	shared_names_put(&writer, index, SLICE("NO NAME"), 1);
	assert_false(names_lookup(follower, &address, &host));
	shared_names_put(&writer, index, SLICE("a.test"), 1);
	finds(follower, "10.200.1.0", "a.test");
	shared_names_put(&writer, index, SLICE("../x"), 1);
	assert_false(names_lookup(follower, &address, &host));
	shared_names_close(&writer);
	names_free(follower);
	close(memory);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(a_follower_knows_the_first_ones_names),
	        cmocka_unit_test(what_a_follower_holds_stays),
	        cmocka_unit_test(times_to_come_keep_nothing),
	        cmocka_unit_test(a_follower_reads_again_what_was_no_name),
	        cmocka_unit_test(addresses_are_stable),
	        cmocka_unit_test(only_own_addresses_are_synthetic),
	        cmocka_unit_test(refuses_what_is_no_host),
	        cmocka_unit_test(the_longest_idle_goes_first),
	        cmocka_unit_test(held_names_stay),
	        cmocka_unit_test(asking_for_a_held_name_keeps_it),
	        cmocka_unit_test(small_pools),
	        cmocka_unit_test(many_names),
	        cmocka_unit_test(the_next_worker_knows_them),
	        cmocka_unit_test(two_workers_agree),
	        cmocka_unit_test(a_name_with_two_addresses),
	        cmocka_unit_test(garbage_is_dropped),
	        cmocka_unit_test(noise_does_no_harm),
	};

	return cmocka_run_group_tests_name("names", tests, NULL, NULL);
}
