/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Theory of operation: the tables are deleted when no chain belongs to an interface and no name is
 * guarded any more. Somebody may guard an interface between the check and the deletion, so the
 * deletion is bound to the generation of the rules that was checked.
 */
#include "vethguard/fence/divert.h"

#include <errno.h>
#include <libnftnl/chain.h>
#include <libnftnl/set.h>
#include <string.h>

#include "fence/divert_plan.h"

#define TIDY_TRIES 8

static const uint32_t families[] = {NFPROTO_NETDEV, NFPROTO_INET, NFPROTO_BRIDGE, NFPROTO_ARP};
#define FAMILY_COUNT (sizeof(families) / sizeof(families[0]))

static int take_chain(const struct nlmsghdr *reply, void *context)
{
	struct nftnl_chain *c = nftnl_chain_alloc();

	if (!c)
		return MNL_CB_ERROR;
	if (nftnl_chain_nlmsg_parse(reply, c) == 0 &&
	        strcmp(nftnl_chain_get_str(c, NFTNL_CHAIN_TABLE), DIVERT_TABLE) == 0)
		*(bool *)context = true;
	nftnl_chain_free(c);
	return MNL_CB_OK;
}

static int take_element(struct nftnl_set_elem *e, void *context)
{
	(void)e;
	*(bool *)context = true;
	return 0;
}

static int look_for_names(struct nft *nft, uint32_t family, bool *in_use)
{
	int rc = nft_each_element(nft, family, DIVERT_TABLE, DIVERT_GUARDED, take_element, in_use);

	return rc == -ENOENT ? 0 : rc;
}

static int look(struct nft *nft, bool *in_use)
{
	_Alignas(struct nlmsghdr) char request[NFT_REQUEST_BYTES];
	struct nlmsghdr *header =
	        nftnl_nlmsg_build_hdr(request, NFT_MSG_GETCHAIN, NFPROTO_NETDEV, NLM_F_DUMP, 0);
	int rc = nft_query(nft, header, take_chain, in_use);

	for (size_t i = 0; i < DIVERT_FAMILY_COUNT && rc == 0; i++)
		rc = look_for_names(nft, divert_families[i], in_use);
	return rc;
}

static int delete_tables(struct nft *nft, const bool has[FAMILY_COUNT], uint32_t generation)
{
	struct nft_batch b;
	int rc = nft_batch_init(&b, nft);

	if (rc < 0)
		return rc;
	nft_batch_require_generation(&b, generation);
	for (size_t i = 0; i < FAMILY_COUNT; i++)
		if (has[i])
			batch_table(&b, NFT_MSG_DELTABLE, families[i], DIVERT_TABLE);
	rc = nft_batch_send(&b);
	nft_batch_fini(&b);
	return rc;
}

static int tidy_once(struct nft *nft)
{
	bool has[FAMILY_COUNT] = {false}, in_use = false, any = false;
	uint32_t generation;
	int rc = nft_generation(nft, &generation);

	if (rc == 0)
		rc = look(nft, &in_use);
	for (size_t i = 0; i < FAMILY_COUNT && rc == 0; i++) {
		rc = nft_has_table(nft, families[i], DIVERT_TABLE, &has[i]);
		any |= has[i];
	}
	if (rc < 0)
		return rc == -EINTR ? -ERESTART : rc; /* the rules changed during a dump */
	return in_use || !any ? 0 : delete_tables(nft, has, generation);
}

int divert_tidy(struct divert *d)
{
	int rc = -ERESTART;

	for (int i = 0; i < TIDY_TRIES && rc == -ERESTART; i++)
		rc = tidy_once(&d->nft);
	return rc == -ERESTART ? -EAGAIN : rc;
}
