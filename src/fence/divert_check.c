/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Theory of operation: what belongs to one interface is queried by name, never by a dump of the
 * whole table, so checking one interface of a thousand costs as much as checking the only one.
 */
#include "vethguard/fence/divert.h"

#include <errno.h>
#include <libnftnl/set.h>
#include <string.h>

#include "fence/compare.h"
#include "fence/divert_plan.h"

struct chain_look {
	const struct chain_plan *plan;
	bool as_planned;
};

static int take_chain(const struct nlmsghdr *reply, void *context)
{
	struct chain_look *look = context;
	struct nftnl_chain *c = nftnl_chain_alloc();

	if (!c)
		return MNL_CB_ERROR;
	if (nftnl_chain_nlmsg_parse(reply, c) == 0)
		look->as_planned = compare_chain(c, look->plan);
	nftnl_chain_free(c);
	return MNL_CB_OK;
}

static int check_chain(
        struct nft *nft, const struct chain_plan *chain, const struct rule_list *wanted)
{
	_Alignas(struct nlmsghdr) char request[NFT_REQUEST_BYTES];
	struct nlmsghdr *header = nftnl_nlmsg_build_hdr(
	        request, NFT_MSG_GETCHAIN, (uint16_t)chain->family, NLM_F_ACK, 0);
	struct chain_look look = {chain, false};
	int rc;

	mnl_attr_put_strz(header, NFTA_CHAIN_TABLE, chain->table);
	mnl_attr_put_strz(header, NFTA_CHAIN_NAME, chain->name);
	rc = nft_query(nft, header, take_chain, &look);
	if (rc == 0)
		rc = look.as_planned ? compare_rules(nft, wanted) : -ESTALE;
	return rc;
}

/* Returns -ENOENT if the interface is not in the set. */
static int check_in_set(struct nft *nft, const struct set_plan *plan, const char *interface)
{
	_Alignas(struct nlmsghdr) char request[NFT_REQUEST_BYTES];
	struct nlmsghdr *header = nftnl_nlmsg_build_hdr(
	        request, NFT_MSG_GETSETELEM, (uint16_t)plan->family, NLM_F_ACK, 0);
	struct nftnl_set *s = set_with_interface(plan, interface);

	if (!s)
		return -ENOMEM;
	nftnl_set_elems_nlmsg_build_payload(header, s);
	nftnl_set_free(s);
	return nft_query(nft, header, NULL, NULL);
}

static int check_guarded(struct nft *nft, uint32_t family, const char *interface)
{
	struct set_plan guarded = divert_guarded(family), itself = divert_itself();
	int rc = check_in_set(nft, &guarded, interface);

	if (rc == 0 && family == NFPROTO_INET)
		rc = check_in_set(nft, &itself, interface);
	return rc;
}

static int check_wall(struct divert *d, const struct divert_spec *spec)
{
	struct chain_plan chains[DIVERT_WALL_MAX];
	size_t count = divert_wall(d, chains);
	struct rule_list wanted;
	int rc = compare_table(&d->nft, NFPROTO_NETDEV, DIVERT_TABLE);

	for (size_t i = 0; i < DIVERT_FAMILY_COUNT && rc == 0; i++) {
		if (!d->has_family[i])
			continue;
		rc = compare_table(&d->nft, divert_families[i], DIVERT_TABLE);
		if (rc == 0)
			rc = check_guarded(&d->nft, divert_families[i], spec->interface);
		if (rc == 0 && spec->link[0])
			rc = check_guarded(&d->nft, divert_families[i], spec->link);
	}
	for (size_t i = 0; i < count && rc == 0; i++) {
		rc = divert_wall_rules(&chains[i], &wanted);
		if (rc == 0)
			rc = check_chain(&d->nft, &chains[i], &wanted);
		rule_list_fini(&wanted);
	}
	return rc;
}

static int check_chains(struct divert *d, const struct divert_spec *spec)
{
	struct rule_list wanted;
	int rc = 0;

	for (enum divert_chain which = 0; which < DIVERT_CHAIN_COUNT && rc == 0; which++) {
		struct chain_plan chain = divert_chain(which, spec);

		if ((which == DIVERT_BACK && !spec->link[0]) ||
		        (which == DIVERT_OUT && !d->has_egress))
			continue;
		rc = divert_rules(which, spec, &chain, &wanted);
		if (rc == 0)
			rc = check_chain(&d->nft, &chain, &wanted);
		rule_list_fini(&wanted);
	}
	return rc;
}

int divert_check(struct divert *d, const struct divert_spec *spec)
{
	int rc = fence_look_for(spec->interface);
	bool away = rc == -ENODEV;

	if (away)
		rc = 0;
	if (rc == 0 && spec->link[0]) {
		rc = fence_look_for(spec->link);
		rc = rc == -ENODEV ? -ENOLINK : rc;
	}
	if (rc < 0)
		return rc;
	rc = check_wall(d, spec);
	if (rc == 0 && !away)
		rc = check_chains(d, spec);
	if (rc == 0 && !away)
		rc = divert_filters_check(d, spec);
	if (rc == 0 && away)
		return -ENODEV;
	return rc == -ENOENT || rc == -EINTR ? -ESTALE : rc;
}
