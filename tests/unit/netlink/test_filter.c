/* SPDX-License-Identifier: Apache-2.0 */
/* Programs in traffic control: attached, compared, replaced, removed; those of others are
 * left alone. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <linux/bpf.h>
#include <linux/pkt_cls.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "privileges.h"
#include "vethguard/netlink/filter.h"
#include "vethguard/netlink/netns.h"

#define VERDICT(v)                                                 \
	{                                                          \
		{.code = BPF_ALU64 | BPF_MOV | BPF_K, .imm = (v)}, \
		{                                                  \
			.code = BPF_JMP | BPF_EXIT                 \
		}                                                  \
	}
static const struct bpf_insn drop[] = VERDICT(TC_ACT_SHOT), pass[] = VERDICT(TC_ACT_UNSPEC);
static struct netlink *nl;
static struct filter_place in, out;
static int dropping, passing;
static uint8_t drop_tag[FILTER_TAG_BYTES], pass_tag[FILTER_TAG_BYTES];

static int shell(const char *line)
{
	return system(line);
}

static int set_up(void **state)
{
	int netns = netns_new();
	unsigned index;

	(void)state;
	if (netns < 0 || setns(netns, CLONE_NEWNET) < 0 || netlink_open(&nl) < 0)
		return -1;
	close(netns);
	if (shell("ip link add v0 type veth peer name v1") != 0)
		return -1;
	index = netlink_link_index(nl, "v0");
	in = (struct filter_place){index, FILTER_INGRESS, 1, "ours"};
	out = (struct filter_place){index, FILTER_EGRESS, 1, "ours"};
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	netlink_close(nl);
	return 0;
}

static void programs_come_and_go(void **state)
{
	(void)state;
	assert_memory_not_equal(drop_tag, pass_tag, sizeof(drop_tag));
	assert_int_equal(filter_check(nl, &in, drop_tag), -ESTALE);
	assert_int_equal(filter_remove(nl, &in), 0);
	assert_int_equal(filter_tidy(nl, in.index), 0);
	assert_int_equal(filter_set(nl, &in, dropping), 0);
	assert_int_equal(filter_check(nl, &in, drop_tag), 0);
	assert_int_equal(filter_check(nl, &in, pass_tag), -ESTALE);
	assert_int_equal(filter_check(nl, &out, drop_tag), -ESTALE);
	assert_int_equal(filter_set(nl, &out, passing), 0);
	assert_int_equal(filter_check(nl, &out, pass_tag), 0);
	assert_int_equal(filter_check(nl, &in, drop_tag), 0);
	/* Another one in its place, and only one. */
	assert_int_equal(filter_set(nl, &in, passing), 0);
	assert_int_equal(filter_check(nl, &in, pass_tag), 0);
	assert_int_equal(shell("test $(tc filter show dev v0 ingress | grep -c ours) = 1"), 0);
	assert_int_equal(filter_remove(nl, &in), 0);
	assert_int_equal(filter_check(nl, &in, pass_tag), -ESTALE);
	assert_int_equal(filter_tidy(nl, in.index), 0); /* not empty yet */
	assert_int_equal(filter_check(nl, &out, pass_tag), 0);
	assert_int_equal(filter_remove(nl, &out), 0);
	assert_int_equal(filter_tidy(nl, out.index), 0);
	assert_int_not_equal(shell("tc qdisc show dev v0 | grep clsact"), 0);
}

static void what_is_gone_is_noticed(void **state)
{
	(void)state;
	assert_int_equal(filter_set(nl, &in, dropping), 0);
	assert_int_equal(shell("tc filter del dev v0 ingress"), 0);
	assert_int_equal(filter_check(nl, &in, drop_tag), -ESTALE);
	assert_int_equal(filter_set(nl, &in, dropping), 0);
	assert_int_equal(shell("tc qdisc del dev v0 clsact"), 0);
	assert_int_equal(filter_check(nl, &in, drop_tag), -ESTALE);
	assert_int_equal(filter_set(nl, &in, dropping), 0);
	assert_int_equal(filter_check(nl, &in, drop_tag), 0);
	assert_int_equal(shell("ip link del v0"), 0);
	assert_int_equal(filter_check(nl, &in, drop_tag), -ENODEV);
	assert_int_equal(filter_set(nl, &in, dropping), -ENODEV);
	assert_int_equal(filter_remove(nl, &in), 0);
	assert_int_equal(filter_tidy(nl, in.index), 0);
}

static void what_is_somebody_elses_stays(void **state)
{
	struct filter_place theirs = in, later = in;

	(void)state;
	theirs.name = "theirs";
	later.priority = 2;
	assert_int_equal(filter_set(nl, &theirs, passing), 0);
	assert_int_equal(filter_set(nl, &in, dropping), -EBUSY);
	assert_int_equal(filter_check(nl, &in, drop_tag), -EBUSY);
	assert_int_equal(filter_remove(nl, &in), 0);
	assert_int_equal(filter_check(nl, &theirs, pass_tag), 0);
	/* Beside it there is room. */
	assert_int_equal(filter_set(nl, &later, dropping), 0);
	assert_int_equal(filter_check(nl, &later, drop_tag), 0);
	assert_int_equal(filter_remove(nl, &later), 0);
	assert_int_equal(filter_tidy(nl, in.index), 0);
	assert_int_equal(filter_check(nl, &theirs, pass_tag), 0);
	/* Another kind of filter, and the older kind of discipline. */
	assert_int_equal(filter_remove(nl, &theirs), 0);
	assert_int_equal(shell("tc filter add dev v0 ingress prio 1 protocol all u32 "
	                       "match u32 0 0 classid 1:1"),
	        0);
	assert_int_equal(filter_set(nl, &in, dropping), -EBUSY);
	assert_int_equal(filter_check(nl, &in, drop_tag), -EBUSY);
	assert_int_equal(filter_remove(nl, &in), 0);
	assert_int_equal(shell("tc qdisc del dev v0 clsact; tc qdisc add dev v0 ingress"), 0);
	assert_int_equal(filter_set(nl, &in, dropping), -EBUSY);
	assert_int_equal(filter_check(nl, &in, drop_tag), -EBUSY);
	assert_int_equal(filter_remove(nl, &in), 0);
	assert_int_equal(filter_tidy(nl, in.index), 0);
	assert_int_equal(shell("tc qdisc show dev v0 | grep -q ingress"), 0);
}

static void nonsense_is_no_program(void **state)
{
	static const struct bpf_insn no_end[] = {{.code = BPF_ALU64 | BPF_MOV | BPF_K}};

	(void)state;
	assert_true(filter_load(no_end, 1) < 0);
	assert_true(filter_load(no_end, 0) < 0);
	assert_true(filter_tag(-1, drop_tag) < 0);
	assert_true(filter_set(nl, &in, -1) < 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define T(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
	        T(programs_come_and_go),
	        T(what_is_gone_is_noticed),
	        T(what_is_somebody_elses_stays),
	        T(nonsense_is_no_program),
	};

	if (!privileges_for_namespaces()) {
		fprintf(stderr, "skipped: no network namespaces for this user\n");
		return 0;
	}
	dropping = filter_load(drop, 2);
	passing = filter_load(pass, 2);
	if (dropping == -EPERM) {
		fprintf(stderr, "skipped: no programs for this user\n");
		return 0;
	}
	if (filter_tag(dropping, drop_tag) < 0 || filter_tag(passing, pass_tag) < 0)
		return 1;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
