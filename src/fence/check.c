/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Theory of operation: every chain of the plan is read back from the kernel and compared with the
 * plan, expression by expression, in the text that libnftnl makes of both. Then the sets: the
 * interface is in both of them, every element of the map leads to a chain of ours, and the ports
 * are exactly the spec's. Anything beside the rules that could undo them counts as changed too: a
 * base chain of our tables that is not in the plan, a dormant table, and in a gate any table that
 * is not ours.
 *
 * The kernel's generation counter is read before and after, so that a change meanwhile restarts the
 * comparison.
 */
#include "vethguard/fence/fence.h"

#include <errno.h>
#include <libnftnl/chain.h>
#include <libnftnl/set.h>
#include <libnftnl/table.h>
#include <string.h>

#include "fence/compare.h"
#include "fence/objects.h"

struct chain_check {
	const struct chain_plan *chains;
	size_t count, found;
	bool stale;
};

static const struct chain_plan *planned(
        const struct chain_check *check, const struct nftnl_chain *c)
{
	for (size_t i = 0; i < check->count; i++) {
		const struct chain_plan *p = &check->chains[i];

		if (p->family == nftnl_chain_get_u32(c, NFTNL_CHAIN_FAMILY) &&
		        strcmp(p->name, nftnl_chain_get_str(c, NFTNL_CHAIN_NAME)) == 0)
			return p;
	}
	return NULL;
}

/* True for another fence's ingress chain, on its own interface; that fence's own check covers
 * it. */
static bool is_other_ingress(const struct nftnl_chain *c)
{
	const char *name = nftnl_chain_get_str(c, NFTNL_CHAIN_NAME);
	size_t n = strlen(FENCE_INGRESS_PREFIX);

	return nftnl_chain_get_u32(c, NFTNL_CHAIN_FAMILY) == NFPROTO_NETDEV &&
	       strncmp(name, FENCE_INGRESS_PREFIX, n) == 0 && compare_device(c, name + n);
}

static int take_chain(const struct nlmsghdr *reply, void *context)
{
	struct chain_check *check = context;
	struct nftnl_chain *c = nftnl_chain_alloc();
	const struct chain_plan *p;

	if (!c)
		return MNL_CB_ERROR;
	if (nftnl_chain_nlmsg_parse(reply, c) == 0 &&
	        strcmp(nftnl_chain_get_str(c, NFTNL_CHAIN_TABLE), FENCE_TABLE) == 0) {
		p = planned(check, c);
		if (p && compare_chain(c, p))
			check->found++;
		else if (p || (nftnl_chain_is_set(c, NFTNL_CHAIN_HOOKNUM) && !is_other_ingress(c)))
			check->stale = true;
	}
	nftnl_chain_free(c);
	return MNL_CB_OK;
}

static int check_rules(
        struct nft *nft, const struct chain_plan *chain, const struct fence_spec *spec)
{
	struct rule_list list;
	int rc = fence_plan_rules(chain, spec, &list);

	if (rc == 0)
		rc = compare_rules(nft, &list);
	rule_list_fini(&list);
	return rc;
}

static int check_chains(struct nft *nft, const struct fence_spec *spec)
{
	static const uint16_t families[] = {NFPROTO_NETDEV, NFPROTO_INET};
	struct chain_plan chains[FENCE_CHAINS_MAX];
	struct chain_check check = {.chains = chains, .count = fence_plan(spec, chains)};
	_Alignas(struct nlmsghdr) char request[NFT_REQUEST_BYTES];
	int rc = 0;

	for (size_t i = 0; i < 2 && rc == 0; i++) {
		struct nlmsghdr *header = nftnl_nlmsg_build_hdr(
		        request, NFT_MSG_GETCHAIN, families[i], NLM_F_DUMP, 0);

		rc = nft_query(nft, header, take_chain, &check);
	}
	if (rc == 0 && (check.stale || check.found != check.count))
		rc = -ESTALE;
	for (size_t i = 0; i < check.count && rc == 0; i++)
		rc = check_rules(nft, &chains[i], spec);
	return rc;
}

struct table_check {
	bool whole_namespace, stale;
	unsigned found;
};

static int take_table(const struct nlmsghdr *reply, void *context)
{
	struct table_check *check = context;
	struct nftnl_table *t = nftnl_table_alloc();
	uint32_t family;

	if (!t)
		return MNL_CB_ERROR;
	if (nftnl_table_nlmsg_parse(reply, t) == 0) {
		family = nftnl_table_get_u32(t, NFTNL_TABLE_FAMILY);
		if (strcmp(nftnl_table_get_str(t, NFTNL_TABLE_NAME), FENCE_TABLE) != 0 ||
		        (family != NFPROTO_NETDEV && family != NFPROTO_INET))
			check->stale |= check->whole_namespace;
		else if (nftnl_table_get_u32(t, NFTNL_TABLE_FLAGS) != 0)
			check->stale = true;
		else
			check->found++;
	}
	nftnl_table_free(t);
	return MNL_CB_OK;
}

static int check_tables(struct nft *nft, const struct fence_spec *spec)
{
	struct table_check check = {.whole_namespace = spec->whole_namespace};
	_Alignas(struct nlmsghdr) char request[NFT_REQUEST_BYTES];
	struct nlmsghdr *header =
	        nftnl_nlmsg_build_hdr(request, NFT_MSG_GETTABLE, AF_UNSPEC, NLM_F_DUMP, 0);
	int rc = nft_query(nft, header, take_table, &check);

	if (rc < 0)
		return rc;
	return check.stale || check.found != 2 ? -ESTALE : 0;
}

struct element_check {
	struct nftnl_set *wanted;
	enum set_kind kind;
	size_t found, others;
	bool stale;
};

struct key {
	const void *bytes;
	uint32_t len;
	bool seen;
};

static int compare_key(struct nftnl_set_elem *e, void *context)
{
	struct key *key = context;
	uint32_t len;
	const void *bytes = nftnl_set_elem_get(e, NFTNL_SET_ELEM_KEY, &len);

	if (len == key->len && memcmp(bytes, key->bytes, len) == 0)
		key->seen = true;
	return 0;
}

/* True if an element of the map leads to the chain of its own interface. */
static bool leads_home(struct nftnl_set_elem *e, const struct key *key)
{
	char expected[FENCE_NAME_MAX], interface[IFNAMSIZ] = "";
	const char *chain = nftnl_set_elem_get_str(e, NFTNL_SET_ELEM_CHAIN);

	memcpy(interface, key->bytes, key->len < IFNAMSIZ ? key->len : IFNAMSIZ - 1);
	fence_name(expected, FENCE_LINK_PREFIX, interface);
	return chain && strcmp(chain, expected) == 0 &&
	       (int32_t)nftnl_set_elem_get_u32(e, NFTNL_SET_ELEM_VERDICT) == NFT_GOTO;
}

static int check_element(struct nftnl_set_elem *e, void *context)
{
	struct element_check *check = context;
	struct key key = {0};

	key.bytes = nftnl_set_elem_get(e, NFTNL_SET_ELEM_KEY, &key.len);
	if (check->kind == SET_SANDBOXES && !leads_home(e, &key))
		check->stale = true;
	nftnl_set_elem_foreach(check->wanted, compare_key, &key);
	if (key.seen)
		check->found++;
	else
		check->others++;
	return 0;
}

static int count_element(struct nftnl_set_elem *e, void *context)
{
	(void)e;
	++*(size_t *)context;
	return 0;
}

static int check_set(struct nft *nft, enum set_kind kind, const struct fence_spec *spec)
{
	char name[FENCE_NAME_MAX];
	struct set_plan plan = set_plan(kind, spec, name);
	struct element_check check = {.kind = kind};
	size_t wanted = 0;
	int rc;

	check.wanted = set_with_elements(&plan, kind, spec);
	if (!check.wanted)
		return -ENOMEM;
	nftnl_set_elem_foreach(check.wanted, count_element, &wanted);
	rc = nft_each_element(nft, plan.family, FENCE_TABLE, plan.name, check_element, &check);
	nftnl_set_free(check.wanted);
	if (rc < 0)
		return rc;
	if ((kind == SET_UDP || kind == SET_EXTENSIONS) && check.others)
		return -ESTALE;
	return check.stale || check.found != wanted ? -ESTALE : 0;
}

static int look(struct nft *nft, const void *context)
{
	const struct fence_spec *spec = context;
	int rc;

	if (if_nametoindex(spec->interface) == 0)
		return -ESTALE; /* gone or renamed, so no packet reaches the rules */
	rc = check_tables(nft, spec);
	if (rc == 0)
		rc = check_chains(nft, spec);
	for (enum set_kind kind = 0; kind < SET_PLANNED_COUNT && rc == 0; kind++)
		rc = check_set(nft, kind, spec);
	return rc;
}

int fence_check(const struct fence_spec *spec)
{
	int rc = fence_spec_check(spec);

	return rc < 0 ? rc : compare_still(look, spec);
}
