/* SPDX-License-Identifier: Apache-2.0 */
/* Bounds of the buffer that rules are built in: too much is refused as a whole, never sent in part.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <net/if.h>

#include "fence/objects.h"
#include "world.h"

static void set_up_table(struct nft *nft, size_t extra_messages, int expected)
{
	struct nft_batch b;

	assert_int_equal(nft_batch_init(&b, nft), 0);
	for (size_t i = 0; i <= extra_messages; i++)
		batch_table(&b, NFT_MSG_NEWTABLE, NFPROTO_INET, FENCE_TABLE);
	assert_int_equal(nft_batch_send(&b), expected);
	nft_batch_fini(&b);
}

static void a_batch_too_long_is_not_sent(void **state)
{
	struct nft nft;
	uint32_t before, after;

	(void)state;
	assert_int_equal(nft_open(&nft), 0);
	assert_int_equal(nft_generation(&nft, &before), 0);
	set_up_table(&nft, NFT_BATCH_BYTES / 16, -ENOBUFS);
	assert_int_equal(nft_generation(&nft, &after), 0);
	assert_int_equal(before, after);
	set_up_table(&nft, 100, 0);
	assert_int_equal(nft_generation(&nft, &after), 0);
	assert_int_not_equal(before, after);
	nft_close(&nft);
}

static void a_batch_with_one_error_does_nothing(void **state)
{
	struct chain_plan absent = {.table = FENCE_TABLE, .family = NFPROTO_INET, .name = "absent"};
	struct chain_plan fresh = {.table = FENCE_TABLE, .family = NFPROTO_INET, .name = "fresh"};
	struct nft nft;
	struct nft_batch b;
	uint32_t before, after;

	(void)state;
	assert_int_equal(nft_open(&nft), 0);
	set_up_table(&nft, 0, 0);
	assert_int_equal(nft_generation(&nft, &before), 0);
	assert_int_equal(nft_batch_init(&b, &nft), 0);
	batch_chain(&b, NFT_MSG_NEWCHAIN, &fresh);
	batch_chain(&b, NFT_MSG_DELCHAIN, &absent);
	batch_table(&b, NFT_MSG_NEWTABLE, NFPROTO_INET, FENCE_TABLE);
	assert_int_equal(nft_batch_send(&b), -ENOENT);
	nft_batch_fini(&b);
	assert_int_equal(nft_generation(&nft, &after), 0);
	assert_int_equal(before, after);
	nft_close(&nft);
}

/* More than the kernel has ready when the first of it is read. */
#define MANY_CHAINS 1500

static void make_chains(struct nft *nft, const char *prefix, unsigned count)
{
	struct chain_plan chain = {.table = FENCE_TABLE, .family = NFPROTO_INET};
	struct nft_batch b;

	assert_int_equal(nft_batch_init(&b, nft), 0);
	for (unsigned i = 0; i < count; i++) {
		snprintf(chain.name, sizeof(chain.name), "%s%u", prefix, i);
		batch_chain(&b, NFT_MSG_NEWCHAIN, &chain);
	}
	assert_int_equal(nft_batch_send(&b), 0);
	nft_batch_fini(&b);
}

struct overtaking {
	bool wanted;
	unsigned count;
};

static int count_chains(const struct nlmsghdr *reply, void *context)
{
	struct overtaking *o = context;
	struct nft other;

	(void)reply;
	if (o->count++ == 0 && o->wanted) {
		assert_int_equal(nft_open(&other), 0);
		make_chains(&other, "other", 1);
		nft_close(&other);
	}
	return MNL_CB_OK;
}

static int dump_chains(struct nft *nft, struct overtaking *o)
{
	_Alignas(struct nlmsghdr) char request[NFT_REQUEST_BYTES];

	return nft_query(nft,
	        nftnl_nlmsg_build_hdr(request, NFT_MSG_GETCHAIN, NFPROTO_INET, NLM_F_DUMP, 0),
	        count_chains, o);
}

/* It is read to its end, so what is asked next over the same socket is answered. */
static void a_dump_that_is_overtaken(void **state)
{
	struct overtaking overtaken = {.wanted = true}, whole = {0};
	struct nft nft;
	uint32_t generation;

	(void)state;
	assert_int_equal(nft_open(&nft), 0);
	set_up_table(&nft, 0, 0);
	make_chains(&nft, "one", MANY_CHAINS);
	assert_int_equal(dump_chains(&nft, &overtaken), -EINTR);
	assert_true(overtaken.count < MANY_CHAINS);
	assert_int_equal(nft_generation(&nft, &generation), 0);
	assert_int_equal(dump_chains(&nft, &whole), 0);
	assert_int_equal(whole.count, MANY_CHAINS + 1);
	nft_close(&nft);
}

static void a_batch_for_another_generation_is_refused(void **state)
{
	struct nft nft;
	struct nft_batch b;
	uint32_t generation;

	(void)state;
	assert_int_equal(nft_open(&nft), 0);
	set_up_table(&nft, 0, 0);
	assert_int_equal(nft_generation(&nft, &generation), 0);
	set_up_table(&nft, 0, 0);
	assert_int_equal(nft_batch_init(&b, &nft), 0);
	nft_batch_require_generation(&b, generation - 1);
	batch_table(&b, NFT_MSG_DELTABLE, NFPROTO_INET, FENCE_TABLE);
	assert_int_equal(nft_batch_send(&b), -ERESTART);
	nft_batch_fini(&b);
	nft_close(&nft);
}

static void a_chain_has_a_bounded_number_of_rules(void **state)
{
	struct rule_list l = {.family = NFPROTO_INET, .table = "t", .chain = "c"};

	(void)state;
	for (int i = 0; i < RULES_MAX; i++)
		rule_begin(&l);
	assert_false(l.failed);
	rule_begin(&l);
	assert_true(l.failed);
	assert_int_equal(l.count, RULES_MAX);
	rule_list_fini(&l);
	assert_int_equal(l.count, 0);
}

static void an_expression_needs_a_rule(void **state)
{
	static const uint8_t mask[64];
	struct rule_list l = {.family = NFPROTO_INET, .table = "t", .chain = "c"};

	(void)state;
	rule_notrack(&l);
	assert_true(l.failed);
	l.failed = false;
	rule_begin(&l);
	rule_load_mask(&l, mask, sizeof(mask)); /* wider than a register */
	assert_true(l.failed);
	rule_list_fini(&l);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(a_batch_too_long_is_not_sent),
	        cmocka_unit_test(a_batch_with_one_error_does_nothing),
	        cmocka_unit_test(a_dump_that_is_overtaken),
	        cmocka_unit_test(a_batch_for_another_generation_is_refused),
	        cmocka_unit_test(a_chain_has_a_bounded_number_of_rules),
	        cmocka_unit_test(an_expression_needs_a_rule),
	};

	(void)world_setup;
	(void)world_teardown;
	(void)world_shell;
	if (!privileges_for_namespaces()) {
		fprintf(stderr, "skipped: no network namespaces for this user\n");
		return 0;
	}
	return cmocka_run_group_tests(tests, NULL, NULL);
}
