/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Theory of operation: each function builds the libnftnl object, writes it as the batch's next
 * message and frees it. Running out of memory marks the batch as failed, so that a caller checks
 * once, when it sends.
 */
#include "fence/objects.h"

#include <arpa/inet.h>
#include <libnftnl/chain.h>
#include <libnftnl/object.h>
#include <libnftnl/set.h>
#include <libnftnl/table.h>
#include <libnftnl/udata.h>
#include <string.h>

/* Numbers of nft's own type list, used only when nft lists the rules. */
#define NFT_TYPE_IPADDR 7
#define NFT_TYPE_IP6ADDR 8
#define NFT_TYPE_INET_PROTO 12
#define NFT_TYPE_INET_SERVICE 13
#define NFT_TYPE_IFNAME 41
#define NFT_BYTE_ORDER_HOST 1

void batch_table(struct nft_batch *b, uint16_t type, uint32_t family, const char *table)
{
	struct nlmsghdr *header = nft_batch_message(
	        b, type, (uint16_t)family, type == NFT_MSG_NEWTABLE ? NLM_F_CREATE : 0);
	struct nftnl_table *t = nftnl_table_alloc();

	if (!t) {
		b->failed = true;
		return;
	}
	nftnl_table_set_u32(t, NFTNL_TABLE_FAMILY, family);
	nftnl_table_set_str(t, NFTNL_TABLE_NAME, table);
	if (type == NFT_MSG_NEWTABLE)
		nftnl_table_set_u32(t, NFTNL_TABLE_FLAGS, 0); /* wakes a table that was made
		                                                 dormant */
	nftnl_table_nlmsg_build_payload(header, t);
	nftnl_table_free(t);
}

static void set_hook(struct nftnl_chain *c, const struct chain_plan *chain)
{
	nftnl_chain_set_str(c, NFTNL_CHAIN_TYPE, chain->type ? chain->type : "filter");
	nftnl_chain_set_u32(c, NFTNL_CHAIN_HOOKNUM, chain->hook);
	nftnl_chain_set_s32(c, NFTNL_CHAIN_PRIO, chain->priority);
	nftnl_chain_set_u32(c, NFTNL_CHAIN_POLICY, chain->policy);
	if (chain->device)
		nftnl_chain_set_str(c, NFTNL_CHAIN_DEV, chain->device);
}

void batch_chain(struct nft_batch *b, uint16_t type, const struct chain_plan *chain)
{
	struct nlmsghdr *header = nft_batch_message(
	        b, type, (uint16_t)chain->family, type == NFT_MSG_NEWCHAIN ? NLM_F_CREATE : 0);
	struct nftnl_chain *c = nftnl_chain_alloc();

	if (!c) {
		b->failed = true;
		return;
	}
	nftnl_chain_set_u32(c, NFTNL_CHAIN_FAMILY, chain->family);
	nftnl_chain_set_str(c, NFTNL_CHAIN_TABLE, chain->table);
	nftnl_chain_set_str(c, NFTNL_CHAIN_NAME, chain->name);
	if (chain->base && type == NFT_MSG_NEWCHAIN)
		set_hook(c, chain);
	nftnl_chain_nlmsg_build_payload(header, c);
	nftnl_chain_free(c);
}

static void batch_counter(
        struct nft_batch *b, uint32_t family, const char *prefix, const char *interface)
{
	struct nlmsghdr *header =
	        nft_batch_message(b, NFT_MSG_NEWOBJ, (uint16_t)family, NLM_F_CREATE);
	struct nftnl_obj *o = nftnl_obj_alloc();
	char name[FENCE_NAME_MAX];

	if (!o) {
		b->failed = true;
		return;
	}
	nftnl_obj_set_u32(o, NFTNL_OBJ_FAMILY, family);
	nftnl_obj_set_str(o, NFTNL_OBJ_TABLE, FENCE_TABLE);
	nftnl_obj_set_str(o, NFTNL_OBJ_NAME, fence_name(name, prefix, interface));
	nftnl_obj_set_u32(o, NFTNL_OBJ_TYPE, NFT_OBJECT_COUNTER);
	nftnl_obj_set_u64(o, NFTNL_OBJ_CTR_PKTS, 0);
	nftnl_obj_set_u64(o, NFTNL_OBJ_CTR_BYTES, 0);
	nftnl_obj_nlmsg_build_payload(header, o);
	nftnl_obj_free(o);
}

void batch_counters(struct nft_batch *b, const char *interface)
{
	batch_counter(b, NFPROTO_NETDEV, FENCE_COUNTER_PREFIX, interface);
	batch_counter(b, NFPROTO_INET, FENCE_COUNTER_PREFIX, interface);
	batch_counter(b, NFPROTO_NETDEV, FENCE_PASSED_PREFIX, interface);
	batch_counter(b, NFPROTO_INET, FENCE_RECEIVED_PREFIX, interface);
	batch_counter(b, NFPROTO_INET, FENCE_CONNECTIONS_PREFIX, interface);
	batch_counter(b, NFPROTO_INET, FENCE_QUERIES_PREFIX, interface);
	batch_counter(b, NFPROTO_INET, FENCE_DATAGRAMS_PREFIX, interface);
}

static struct set_plan sources_plan(
        enum set_kind kind, const struct fence_spec *spec, char name[FENCE_NAME_MAX])
{
	bool six = kind == SET_SOURCES6;

	fence_name(name, six ? FENCE_SOURCES6_PREFIX : FENCE_SOURCES4_PREFIX, spec->interface);
	return (struct set_plan){.table = FENCE_TABLE,
	        .family = NFPROTO_NETDEV,
	        .name = name,
	        .flags = NFT_SET_EVAL | NFT_SET_TIMEOUT,
	        .key_type = six ? NFT_TYPE_IP6ADDR : NFT_TYPE_IPADDR,
	        .key_bytes = six ? 16 : 4,
	        .id = six ? 6 : 5,
	        .size = FENCE_SOURCES_MAX,
	        .timeout_s = FENCE_SOURCE_S};
}

struct set_plan set_plan(
        enum set_kind kind, const struct fence_spec *spec, char name[FENCE_NAME_MAX])
{
	switch (kind) {
	case SET_LINKS:
		return (struct set_plan){FENCE_TABLE, NFPROTO_INET, FENCE_LINKS, 0, NFT_TYPE_IFNAME,
		        IFNAMSIZ, 1, 0, 0};
	case SET_SANDBOXES:
		return (struct set_plan){FENCE_TABLE, NFPROTO_INET, FENCE_SANDBOXES, NFT_SET_MAP,
		        NFT_TYPE_IFNAME, IFNAMSIZ, 2, 0, 0};
	case SET_UDP:
		return (struct set_plan){FENCE_TABLE, NFPROTO_INET,
		        fence_name(name, FENCE_UDP_PREFIX, spec->interface), 0,
		        NFT_TYPE_INET_SERVICE, sizeof(uint16_t), 3, 0, 0};
	case SET_SOURCES4:
	case SET_SOURCES6:
		return sources_plan(kind, spec, name);
	case SET_EXTENSIONS:
	case SET_KIND_COUNT:
		break;
	}
	return (struct set_plan){FENCE_TABLE, NFPROTO_NETDEV, FENCE_EXTENSIONS, 0,
	        NFT_TYPE_INET_PROTO, sizeof(uint8_t), 4, 0, 0};
}

static struct nftnl_set *set_alloc(const struct set_plan *plan)
{
	struct nftnl_set *s = nftnl_set_alloc();

	if (!s)
		return NULL;
	nftnl_set_set_u32(s, NFTNL_SET_FAMILY, plan->family);
	nftnl_set_set_str(s, NFTNL_SET_TABLE, plan->table);
	nftnl_set_set_str(s, NFTNL_SET_NAME, plan->name);
	return s;
}

/* Tells nft that a name in a listing is read from its first byte on. */
static void put_host_byte_order(struct nftnl_set *s)
{
	struct nftnl_udata_buf *data = nftnl_udata_buf_alloc(NFT_USERDATA_MAXLEN);

	if (!data)
		return; /* only makes the listing less readable */
	nftnl_udata_put_u32(data, NFTNL_UDATA_SET_KEYBYTEORDER, NFT_BYTE_ORDER_HOST);
	nftnl_set_set_data(
	        s, NFTNL_SET_USERDATA, nftnl_udata_buf_data(data), nftnl_udata_buf_len(data));
	nftnl_udata_buf_free(data);
}

static void write_set(struct nlmsghdr *header, struct nftnl_set *s, const struct set_plan *plan)
{
	nftnl_set_set_u32(s, NFTNL_SET_ID, plan->id);
	nftnl_set_set_u32(s, NFTNL_SET_FLAGS, plan->flags);
	nftnl_set_set_u32(s, NFTNL_SET_KEY_TYPE, plan->key_type);
	nftnl_set_set_u32(s, NFTNL_SET_KEY_LEN, plan->key_bytes);
	if (plan->flags & NFT_SET_MAP)
		nftnl_set_set_u32(s, NFTNL_SET_DATA_TYPE, NFT_DATA_VERDICT);
	if (plan->size) {
		nftnl_set_set_u32(s, NFTNL_SET_DESC_SIZE, plan->size);
		nftnl_set_set_u64(s, NFTNL_SET_TIMEOUT, plan->timeout_s * UINT64_C(1000));
	}
	if (plan->key_type == NFT_TYPE_IFNAME)
		put_host_byte_order(s);
	nftnl_set_nlmsg_build_payload(header, s);
}

void batch_set(struct nft_batch *b, const struct set_plan *plan)
{
	struct nlmsghdr *header =
	        nft_batch_message(b, NFT_MSG_NEWSET, (uint16_t)plan->family, NLM_F_CREATE);
	struct nftnl_set *s = set_alloc(plan);

	if (!s) {
		b->failed = true;
		return;
	}
	write_set(header, s, plan);
	nftnl_set_free(s);
}

/* False: out of memory. */
static bool add_element(struct nftnl_set *s, const void *key, uint32_t bytes, const char *chain)
{
	struct nftnl_set_elem *e = nftnl_set_elem_alloc();

	if (!e)
		return false;
	nftnl_set_elem_set(e, NFTNL_SET_ELEM_KEY, key, bytes);
	if (chain) {
		nftnl_set_elem_set_u32(e, NFTNL_SET_ELEM_VERDICT, (uint32_t)NFT_GOTO);
		nftnl_set_elem_set_str(e, NFTNL_SET_ELEM_CHAIN, chain);
	}
	nftnl_set_elem_add(s, e);
	return true;
}

static bool add_interface(struct nftnl_set *s, const char *interface, bool with_chain)
{
	char key[IFNAMSIZ] = "", chain[FENCE_NAME_MAX];

	memcpy(key, interface, strnlen(interface, IFNAMSIZ - 1));
	fence_name(chain, FENCE_LINK_PREFIX, interface);
	return add_element(s, key, sizeof(key), with_chain ? chain : NULL);
}

static bool named_before(const struct fence_spec *spec, size_t i)
{
	for (size_t j = 0; j < i; j++)
		if (spec->udp_ports[j] == spec->udp_ports[i])
			return true;
	return false;
}

static bool add_ports(struct nftnl_set *s, const struct fence_spec *spec)
{
	bool ok = true;

	for (size_t i = 0; i < spec->udp_port_count && ok; i++) {
		uint16_t key = htons(spec->udp_ports[i]);

		if (!named_before(spec, i))
			ok = add_element(s, &key, sizeof(key), NULL);
	}
	return ok;
}

static bool add_extensions(struct nftnl_set *s)
{
	bool ok = true;

	for (size_t i = 0; i < rules_extension_count && ok; i++)
		ok = add_element(s, &rules_extensions[i], 1, NULL);
	return ok;
}

struct nftnl_set *set_with_elements(
        const struct set_plan *plan, enum set_kind kind, const struct fence_spec *spec)
{
	struct nftnl_set *s = set_alloc(plan);
	bool ok;

	if (!s)
		return NULL;
	if (kind == SET_UDP)
		ok = add_ports(s, spec);
	else if (kind == SET_EXTENSIONS)
		ok = add_extensions(s);
	else
		ok = add_interface(s, spec->interface, kind == SET_SANDBOXES);
	if (ok)
		return s;
	nftnl_set_free(s);
	return NULL;
}

void batch_elements(struct nft_batch *b, enum set_kind kind, const struct fence_spec *spec)
{
	char name[FENCE_NAME_MAX];
	struct set_plan plan = set_plan(kind, spec, name);
	struct nftnl_set *s;
	struct nlmsghdr *header;

	if (kind == SET_UDP && spec->udp_port_count == 0)
		return; /* the kernel refuses a message without elements */
	s = set_with_elements(&plan, kind, spec);
	if (!s) {
		b->failed = true;
		return;
	}
	header = nft_batch_message(b, NFT_MSG_NEWSETELEM, (uint16_t)plan.family, NLM_F_CREATE);
	nftnl_set_elems_nlmsg_build_payload(header, s);
	nftnl_set_free(s);
}

static bool add_pair(struct nftnl_set *s, const char *interface)
{
	char key[FENCE_PAIR_BYTES] = "";

	memcpy(key, interface, strnlen(interface, IFNAMSIZ - 1));
	memcpy(key + IFNAMSIZ, key, IFNAMSIZ);
	return add_element(s, key, sizeof(key), NULL);
}

struct nftnl_set *set_with_interface(const struct set_plan *plan, const char *interface)
{
	struct nftnl_set *s = set_alloc(plan);

	if (!s)
		return NULL;
	if (plan->key_bytes == FENCE_PAIR_BYTES ? add_pair(s, interface)
	                                        : add_interface(s, interface, false))
		return s;
	nftnl_set_free(s);
	return NULL;
}

void batch_interface(
        struct nft_batch *b, uint16_t type, const struct set_plan *plan, const char *interface)
{
	struct nftnl_set *s = set_with_interface(plan, interface);

	if (s)
		nftnl_set_elems_nlmsg_build_payload(
		        nft_batch_message(b, type, (uint16_t)plan->family,
		                type == NFT_MSG_NEWSETELEM ? NLM_F_CREATE : 0),
		        s);
	else
		b->failed = true;
	if (s)
		nftnl_set_free(s);
}

void batch_elements_flush(struct nft_batch *b, const struct set_plan *plan)
{
	struct nlmsghdr *header =
	        nft_batch_message(b, NFT_MSG_DELSETELEM, (uint16_t)plan->family, 0);
	struct nftnl_set *s = set_alloc(plan);

	if (!s) {
		b->failed = true;
		return;
	}
	nftnl_set_elems_nlmsg_build_payload(header, s);
	nftnl_set_free(s);
}

void batch_rules_flush(struct nft_batch *b, const struct chain_plan *chain)
{
	struct nlmsghdr *header = nft_batch_message(b, NFT_MSG_DELRULE, (uint16_t)chain->family, 0);
	struct nftnl_rule *r = nftnl_rule_alloc();

	if (!r) {
		b->failed = true;
		return;
	}
	nftnl_rule_set_str(r, NFTNL_RULE_TABLE, chain->table);
	nftnl_rule_set_str(r, NFTNL_RULE_CHAIN, chain->name);
	nftnl_rule_nlmsg_build_payload(header, r);
	nftnl_rule_free(r);
}

void batch_rule_list(struct nft_batch *b, const struct rule_list *list)
{
	for (size_t i = 0; i < list->count; i++) {
		struct nlmsghdr *header = nft_batch_message(
		        b, NFT_MSG_NEWRULE, (uint16_t)list->family, NLM_F_CREATE | NLM_F_APPEND);

		nftnl_rule_nlmsg_build_payload(header, list->rules[i]);
	}
}

void batch_rules(struct nft_batch *b, const struct chain_plan *chain, const struct fence_spec *spec)
{
	struct rule_list list;

	if (fence_plan_rules(chain, spec, &list) < 0)
		b->failed = true;
	batch_rule_list(b, &list);
	rule_list_fini(&list);
}
