/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Theory of operation: one transaction deletes the table and makes it anew, so nobody sees it
 * missing or half. It is read back like any other fence: chains and rules as text, and nothing else
 * of ours beside them.
 */
#include "vethguard/fence/shared.h"

#include <errno.h>
#include <libnftnl/object.h>
#include <string.h>

#include "fence/compare.h"
#include "fence/objects.h"
#include "fence/shared_plan.h"

static const uint16_t families[] = {NFPROTO_INET, NFPROTO_NETDEV};
#define FAMILY_COUNT (sizeof(families) / sizeof(families[0]))

static void put_counter(struct nft_batch *b, uint16_t family)
{
	struct nlmsghdr *header = nft_batch_message(b, NFT_MSG_NEWOBJ, family, NLM_F_CREATE);
	struct nftnl_obj *o = nftnl_obj_alloc();

	if (!o) {
		b->failed = true;
		return;
	}
	nftnl_obj_set_u32(o, NFTNL_OBJ_FAMILY, family);
	nftnl_obj_set_str(o, NFTNL_OBJ_TABLE, SHARED_TABLE);
	nftnl_obj_set_str(o, NFTNL_OBJ_NAME, SHARED_COUNTER);
	nftnl_obj_set_u32(o, NFTNL_OBJ_TYPE, NFT_OBJECT_COUNTER);
	nftnl_obj_set_u64(o, NFTNL_OBJ_CTR_PKTS, 0);
	nftnl_obj_set_u64(o, NFTNL_OBJ_CTR_BYTES, 0);
	nftnl_obj_nlmsg_build_payload(header, o);
	nftnl_obj_free(o);
}

static void put_rules(
        struct nft_batch *b, const struct shared_chain *chain, const struct fence_shared_spec *spec)
{
	struct rule_list list;

	if (shared_plan_rules(chain, spec, &list) < 0)
		b->failed = true;
	batch_rule_list(b, &list);
	rule_list_fini(&list);
}

static void put_all(struct nft_batch *b, const struct fence_shared_spec *spec)
{
	struct shared_chain chains[SHARED_CHAINS_MAX];
	size_t count = shared_plan(spec, chains);

	for (size_t i = 0; i < FAMILY_COUNT; i++) {
		/* What does not exist cannot be deleted. */
		batch_table(b, NFT_MSG_NEWTABLE, families[i], SHARED_TABLE);
		batch_table(b, NFT_MSG_DELTABLE, families[i], SHARED_TABLE);
		batch_table(b, NFT_MSG_NEWTABLE, families[i], SHARED_TABLE);
		put_counter(b, families[i]);
	}
	for (size_t i = 0; i < count; i++)
		batch_chain(b, NFT_MSG_NEWCHAIN, &chains[i].plan);
	for (size_t i = 0; i < count; i++)
		put_rules(b, &chains[i], spec);
}

int fence_shared_set(const struct fence_shared_spec *spec)
{
	struct nft_batch b;
	struct nft nft;
	int rc = shared_spec_check(spec);

	if (rc == 0)
		rc = nft_open(&nft);
	if (rc < 0)
		return rc;
	rc = nft_batch_init(&b, &nft);
	if (rc == 0) {
		put_all(&b, spec);
		rc = nft_batch_send(&b);
		nft_batch_fini(&b);
	}
	nft_close(&nft);
	return rc;
}

struct chain_check {
	const struct shared_chain *chains;
	size_t count, found;
	bool stale;
};

static void check_chain(struct chain_check *check, const struct nftnl_chain *c)
{
	const char *name = nftnl_chain_get_str(c, NFTNL_CHAIN_NAME);

	for (size_t i = 0; i < check->count; i++)
		if (check->chains[i].plan.family == nftnl_chain_get_u32(c, NFTNL_CHAIN_FAMILY) &&
		        strcmp(name, check->chains[i].plan.name) == 0) {
			if (compare_chain(c, &check->chains[i].plan))
				check->found++;
			else
				check->stale = true;
			return;
		}
	check->stale = true;
}

static int take_chain(const struct nlmsghdr *reply, void *context)
{
	struct nftnl_chain *c = nftnl_chain_alloc();

	if (!c)
		return MNL_CB_ERROR;
	if (nftnl_chain_nlmsg_parse(reply, c) == 0 &&
	        strcmp(nftnl_chain_get_str(c, NFTNL_CHAIN_TABLE), SHARED_TABLE) == 0)
		check_chain(context, c);
	nftnl_chain_free(c);
	return MNL_CB_OK;
}

static int check_chains(struct nft *nft, const struct fence_shared_spec *spec)
{
	_Alignas(struct nlmsghdr) char request[NFT_REQUEST_BYTES];
	struct shared_chain chains[SHARED_CHAINS_MAX];
	struct chain_check check = {.chains = chains, .count = shared_plan(spec, chains)};
	int rc = 0;

	for (size_t i = 0; i < FAMILY_COUNT && rc == 0; i++)
		rc = nft_query(nft,
		        nftnl_nlmsg_build_hdr(
		                request, NFT_MSG_GETCHAIN, families[i], NLM_F_DUMP, 0),
		        take_chain, &check);
	if (rc == 0 && (check.stale || check.found != check.count))
		rc = -ESTALE;
	for (size_t i = 0; i < check.count && rc == 0; i++) {
		struct rule_list list;

		rc = shared_plan_rules(&chains[i], spec, &list);
		if (rc == 0)
			rc = compare_rules(nft, &list);
		rule_list_fini(&list);
	}
	return rc;
}

static int look(struct nft *nft, const void *spec)
{
	int rc = 0;

	for (size_t i = 0; i < FAMILY_COUNT && rc == 0; i++)
		rc = compare_table(nft, families[i], SHARED_TABLE);
	return rc == 0 ? check_chains(nft, spec) : rc;
}

int fence_shared_check(const struct fence_shared_spec *spec)
{
	int rc = shared_spec_check(spec);

	return rc < 0 ? rc : compare_still(look, spec);
}
