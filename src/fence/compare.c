/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Theory of operation: libnftnl turns an expression into text. Rules are equal if the texts of all
 * their expressions are equal, in order.
 */
#include "fence/compare.h"

#include <errno.h>
#include <libnftnl/table.h>
#include <stdlib.h>
#include <string.h>

#define TRIES 8
#define TEXT_BYTES (16 * 1024) /* of one chain; the longest takes about 5 KiB */

struct text {
	char bytes[TEXT_BYTES];
	size_t len;
	bool overflow;
};

static int print_expression(struct nftnl_expr *e, void *context)
{
	struct text *t = context;
	size_t room = TEXT_BYTES - t->len;
	int n = snprintf(t->bytes + t->len, room, "[%s ", nftnl_expr_get_str(e, NFTNL_EXPR_NAME));

	if (n > 0 && (size_t)n < room) {
		t->len += (size_t)n;
		room -= (size_t)n;
		n = nftnl_expr_snprintf(t->bytes + t->len, room, e, NFTNL_OUTPUT_DEFAULT, 0);
	}
	if (n < 0 || (size_t)n >= room)
		t->overflow = true;
	else
		t->len += (size_t)n;
	return 0;
}

static void print_rule(const struct nftnl_rule *rule, struct text *t)
{
	nftnl_expr_foreach((struct nftnl_rule *)rule, print_expression, t);
	if (t->len >= TEXT_BYTES - 1)
		t->overflow = true;
	else
		t->bytes[t->len++] = '\n';
}

static int take_rule(const struct nlmsghdr *reply, void *context)
{
	struct nftnl_rule *rule = nftnl_rule_alloc();

	if (!rule)
		return MNL_CB_ERROR;
	if (nftnl_rule_nlmsg_parse(reply, rule) == 0)
		print_rule(rule, context);
	nftnl_rule_free(rule);
	return MNL_CB_OK;
}

int compare_rules(struct nft *nft, const struct rule_list *wanted)
{
	_Alignas(struct nlmsghdr) char request[NFT_REQUEST_BYTES];
	struct nlmsghdr *header = nftnl_nlmsg_build_hdr(
	        request, NFT_MSG_GETRULE, (uint16_t)wanted->family, NLM_F_DUMP, 0);
	struct text *texts = calloc(2, sizeof(*texts));
	int rc;

	if (!texts)
		return -ENOMEM;
	for (size_t i = 0; i < wanted->count; i++)
		print_rule(wanted->rules[i], &texts[0]);
	mnl_attr_put_strz(header, NFTA_RULE_TABLE, wanted->table);
	mnl_attr_put_strz(header, NFTA_RULE_CHAIN, wanted->chain);
	rc = nft_query(nft, header, take_rule, &texts[1]);
	if (rc == 0 && (texts[0].overflow || texts[1].overflow || texts[0].len != texts[1].len ||
	                       memcmp(texts[0].bytes, texts[1].bytes, texts[0].len) != 0))
		rc = -ESTALE;
	free(texts);
	return rc;
}

bool compare_device(const struct nftnl_chain *c, const char *name)
{
	const char *const *devices;

	if (nftnl_chain_is_set(c, NFTNL_CHAIN_DEV))
		return strcmp(nftnl_chain_get_str(c, NFTNL_CHAIN_DEV), name) == 0;
	if (!nftnl_chain_is_set(c, NFTNL_CHAIN_DEVICES))
		return false;
	devices = nftnl_chain_get_array(c, NFTNL_CHAIN_DEVICES);
	return devices[0] && strcmp(devices[0], name) == 0 && !devices[1];
}

bool compare_chain(const struct nftnl_chain *c, const struct chain_plan *p)
{
	if (nftnl_chain_is_set(c, NFTNL_CHAIN_HOOKNUM) != p->base)
		return false;
	if (!p->base)
		return true;
	return strcmp(nftnl_chain_get_str(c, NFTNL_CHAIN_TYPE), p->type ? p->type : "filter") ==
	               0 &&
	       nftnl_chain_get_u32(c, NFTNL_CHAIN_HOOKNUM) == p->hook &&
	       nftnl_chain_get_s32(c, NFTNL_CHAIN_PRIO) == p->priority &&
	       nftnl_chain_get_u32(c, NFTNL_CHAIN_POLICY) == p->policy &&
	       (!p->device || compare_device(c, p->device));
}

static int take_table(const struct nlmsghdr *reply, void *context)
{
	struct nftnl_table *t = nftnl_table_alloc();

	if (!t)
		return MNL_CB_ERROR;
	if (nftnl_table_nlmsg_parse(reply, t) == 0)
		*(bool *)context = nftnl_table_get_u32(t, NFTNL_TABLE_FLAGS) == 0;
	nftnl_table_free(t);
	return MNL_CB_OK;
}

int compare_table(struct nft *nft, uint32_t family, const char *name)
{
	_Alignas(struct nlmsghdr) char request[NFT_REQUEST_BYTES];
	struct nlmsghdr *header =
	        nftnl_nlmsg_build_hdr(request, NFT_MSG_GETTABLE, (uint16_t)family, NLM_F_ACK, 0);
	bool awake = false;
	int rc;

	mnl_attr_put_strz(header, NFTA_TABLE_NAME, name);
	rc = nft_query(nft, header, take_table, &awake);
	return rc == 0 && !awake ? -ESTALE : rc;
}

static int look_once(struct nft *nft, int (*look)(struct nft *, const void *spec), const void *spec)
{
	uint32_t before, after;
	int rc = nft_generation(nft, &before);

	if (rc == 0)
		rc = look(nft, spec);
	if (rc == -EINTR || (nft_generation(nft, &after) == 0 && before != after))
		return -ERESTART; /* the rules changed meanwhile */
	return rc == -ENOENT ? -ESTALE : rc;
}

int compare_still(int (*look)(struct nft *, const void *spec), const void *spec)
{
	struct nft nft;
	int rc = nft_open(&nft);

	if (rc < 0)
		return rc;
	rc = -ERESTART;
	for (int i = 0; i < TRIES && rc == -ERESTART; i++)
		rc = look_once(&nft, look, spec);
	nft_close(&nft);
	return rc == -ERESTART ? -EAGAIN : rc;
}
