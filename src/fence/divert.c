/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Theory of operation: a new interface only adds to the tables: three chains, three rules, its name
 * in the sets. Nothing is deleted then: the kernel frees deleted objects only after an RCU grace
 * period, and the next close of a netlink socket waits for that. For the same reason the sockets
 * stay open. Chains of other interfaces are not touched, so the thousandth interface costs what the
 * first does, apart from the kernel's search in the table.
 *
 * A transaction that fails waits for such a period, too. So this file first asks whether the tables
 * exist; they are removed with the last interface.
 *
 * Existing chains with these names are deleted and made again within one transaction, so that no
 * frame finds one missing: the new hook is in place before the old one goes.
 */
#include "vethguard/fence/divert.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "fence/divert_plan.h"

static void batch_wall(struct nft_batch *b, const struct divert *d)
{
	struct chain_plan chains[DIVERT_WALL_MAX];
	size_t count = divert_wall(d, chains);
	struct set_plan itself = divert_itself();
	struct rule_list list;

	batch_table(b, NFT_MSG_NEWTABLE, NFPROTO_NETDEV, DIVERT_TABLE);
	for (size_t i = 0; i < DIVERT_FAMILY_COUNT; i++) {
		struct set_plan guarded = divert_guarded(divert_families[i]);

		if (!d->has_family[i])
			continue;
		batch_table(b, NFT_MSG_NEWTABLE, divert_families[i], DIVERT_TABLE);
		batch_set(b, &guarded);
	}
	batch_set(b, &itself);
	for (size_t i = 0; i < count; i++) {
		batch_chain(b, NFT_MSG_NEWCHAIN, &chains[i]);
		batch_rules_flush(b, &chains[i]);
		if (divert_wall_rules(&chains[i], &list) < 0)
			b->failed = true;
		batch_rule_list(b, &list);
		rule_list_fini(&list);
	}
}

static void batch_guard(
        struct nft_batch *b, const struct divert *d, uint16_t type, const char *interface)
{
	struct set_plan itself = divert_itself();

	batch_interface(b, type, &itself, interface);
	for (size_t i = 0; i < DIVERT_FAMILY_COUNT; i++) {
		struct set_plan guarded = divert_guarded(divert_families[i]);

		if (d->has_family[i])
			batch_interface(b, type, &guarded, interface);
	}
}

/* Before Linux 6.3 nf_tables has no "delete if it exists". So this makes the chain first and then
 * deletes it. */
static void batch_chain_gone(struct nft_batch *b, const struct chain_plan *chain)
{
	struct chain_plan plain = *chain;

	plain.base = false;
	batch_chain(b, NFT_MSG_NEWCHAIN, &plain);
	batch_rules_flush(b, &plain);
	batch_chain(b, NFT_MSG_DELCHAIN, &plain);
}

/* False for chains that do not exist in this case: the way back without a link, and the egress hook
 * on older kernels. */
static bool has_chain(
        const struct divert *d, const struct divert_spec *spec, enum divert_chain which)
{
	if (which == DIVERT_BACK)
		return spec->link[0];
	return which == DIVERT_IN || d->has_egress;
}

static void batch_chains(
        struct nft_batch *b, const struct divert *d, const struct divert_spec *spec, bool replace)
{
	struct rule_list list;

	for (enum divert_chain which = 0; which < DIVERT_CHAIN_COUNT; which++) {
		struct chain_plan chain = divert_chain(which, spec);

		if (!has_chain(d, spec, which) ||
		        (which != DIVERT_BACK && !if_nametoindex(spec->interface)))
			continue;
		if (replace)
			batch_chain_gone(b, &chain);
		batch_chain(b, NFT_MSG_NEWCHAIN, &chain);
		b->open->nlmsg_flags |= NLM_F_EXCL;
		if (divert_rules(which, spec, &chain, &list) < 0)
			b->failed = true;
		batch_rule_list(b, &list);
		rule_list_fini(&list);
	}
}

enum what { ADD, FIRST, ANEW };

static int set_once(struct divert *d, const struct divert_spec *spec, enum what what)
{
	struct nft_batch b;
	int rc = nft_batch_init(&b, &d->nft);

	if (rc < 0)
		return rc;
	if (what != ADD)
		batch_wall(&b, d);
	batch_guard(&b, d, NFT_MSG_NEWSETELEM, spec->interface);
	if (spec->link[0])
		batch_guard(&b, d, NFT_MSG_NEWSETELEM, spec->link);
	batch_chains(&b, d, spec, what == ANEW);
	rc = nft_batch_send(&b);
	nft_batch_fini(&b);
	return rc;
}

/* Older kernels lack a hook or a family and do without that part. First one part at a time is left
 * out, then one after the other, so that no part is given up because of another. */
static int set_with(struct divert *d, const struct divert_spec *spec, enum what what)
{
	bool *const optional[] = {
	        &d->has_egress, &d->has_family[DIVERT_BRIDGE], &d->has_family[DIVERT_ARP]};
	const size_t count = sizeof(optional) / sizeof(optional[0]);
	int rc = set_once(d, spec, what);

	for (size_t i = 0; i < count && rc == -EOPNOTSUPP; i++) {
		bool had = *optional[i];

		if (!had)
			continue;
		*optional[i] = false;
		rc = set_once(d, spec, what);
		if (rc == -EOPNOTSUPP)
			*optional[i] = had;
	}
	for (size_t i = 0; i < count && rc == -EOPNOTSUPP; i++) {
		*optional[i] = false;
		rc = set_once(d, spec, what);
	}
	return rc;
}

static int check_spec(const struct divert_spec *spec)
{
	size_t n = strnlen(spec->interface, IFNAMSIZ), link = strnlen(spec->link, IFNAMSIZ);

	if (n == 0 || n == IFNAMSIZ || link == IFNAMSIZ || strcmp(spec->interface, "lo") == 0)
		return -EINVAL;
	return strcmp(spec->interface, spec->link) == 0 ? -EINVAL : 0;
}

/* Returns the parts that the rules need and that are not known to exist. */
static enum what missing(struct divert *d, bool interface)
{
	bool has;

	if (!interface || nft_has_table(&d->nft, NFPROTO_NETDEV, DIVERT_TABLE, &has) != 0)
		return ANEW;
	return has ? ADD : FIRST;
}

int divert_set(struct divert *d, const struct divert_spec *spec)
{
	int rc = check_spec(spec), there, filters;

	if (rc == 0 && spec->link[0]) {
		rc = fence_look_for(spec->link);
		rc = rc == -ENODEV ? -ENOLINK : rc;
	}
	if (rc < 0)
		return rc;
	there = fence_look_for(spec->interface);
	if (there < 0 && there != -ENODEV)
		return there;
	/* the programs divert at once; rules may have to wait until others, which were deleted just
	 * now, are freed */
	filters = divert_filters_set(d, spec);
	rc = set_with(d, spec, missing(d, there == 0));
	/* The interface's chains exist already, or a part of the wall is missing: somebody has
	 * changed the rules, so everything is written anew. */
	if (rc == -EEXIST || rc == -ENOENT)
		rc = set_with(d, spec, ANEW);
	if (rc == 0)
		rc = filters;
	if (rc == 0)
		rc = divert_ports(d, spec);
	return rc == 0 ? there : rc;
}

static int remove_rules(struct divert *d, const struct divert_spec *spec, bool shut)
{
	struct divert_spec closed = *spec;
	struct nft_batch b;
	int rc = nft_batch_init(&b, &d->nft);

	if (rc < 0)
		return rc;
	batch_wall(&b, d);
	closed.link[0] = 0;
	for (enum divert_chain which = 0; which < DIVERT_CHAIN_COUNT; which++) {
		struct chain_plan chain = divert_chain(which, spec);

		if (has_chain(d, spec, which))
			batch_chain_gone(&b, &chain);
	}
	if (spec->link[0]) {
		batch_guard(&b, d, NFT_MSG_NEWSETELEM, spec->link);
		batch_guard(&b, d, NFT_MSG_DELSETELEM, spec->link);
	}
	batch_guard(&b, d, NFT_MSG_NEWSETELEM, spec->interface);
	if (!shut)
		batch_guard(&b, d, NFT_MSG_DELSETELEM, spec->interface);
	else if (if_nametoindex(spec->interface))
		batch_chains(&b, d, &closed, false);
	rc = nft_batch_send(&b);
	nft_batch_fini(&b);
	return rc;
}

int divert_remove(struct divert *d, const struct divert_spec *spec)
{
	int rc = check_spec(spec);

	if (rc == 0)
		rc = remove_rules(d, spec, false);
	return rc < 0 ? rc : divert_filters_remove(d, spec);
}

int divert_shut(struct divert *d, const struct divert_spec *spec)
{
	struct divert_spec closed = *spec;
	int rc = check_spec(spec), filters;

	if (rc < 0)
		return rc;
	closed.link[0] = 0;
	filters = divert_filters_set(d, &closed);
	if (!filters)
		filters = divert_ports(d, &closed);
	rc = remove_rules(d, spec, true); /* even if the filters failed */
	return rc < 0 || filters == -ENODEV ? rc : filters;
}

int divert_open(struct divert **out)
{
	struct divert *d = calloc(1, sizeof(*d));
	int rc;

	*out = NULL;
	if (!d)
		return -ENOMEM;
	d->has_egress = true;
	for (size_t i = 0; i < DIVERT_FAMILY_COUNT; i++)
		d->has_family[i] = true;
	for (size_t i = 0; i < PROGRAM_SHARED_COUNT; i++)
		d->programs[i] = -1;
	rc = nft_open(&d->nft);
	if (rc < 0) {
		free(d);
		return rc;
	}
	rc = netlink_open(&d->nl);
	if (rc < 0) {
		divert_close(d);
		return rc;
	}
	d->port = mnl_socket_get_portid(d->nft.socket);
	*out = d;
	return 0;
}

void divert_close(struct divert *d)
{
	if (!d)
		return;
	for (size_t i = 0; i < PROGRAM_SHARED_COUNT; i++)
		if (d->programs[i] >= 0)
			close(d->programs[i]);
	netlink_close(d->nl);
	nft_close(&d->nft);
	free(d);
}

uint32_t divert_port(const struct divert *d)
{
	return d->port;
}

uint32_t divert_filter_port(const struct divert *d)
{
	return netlink_port(d->nl);
}

int divert_filters(const struct divert *d)
{
	return d->filters;
}
