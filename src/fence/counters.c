/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Theory of operation: each of the two tables has a named counter for what the fence refused; their
 * sum is the result. What exceeded a bound counts there too and has a counter of its own. What the
 * IP stack dropped between the two tables is the difference of two further counters, of which the
 * first is read first: a packet between them is counted only once it is lost, never before.
 */
#include "vethguard/fence/fence.h"

#include <errno.h>
#include <libnftnl/object.h>
#include <string.h>

#include "fence/objects.h"

static int take_counter(const struct nlmsghdr *reply, void *context)
{
	struct fence_counters *sum = context;
	struct nftnl_obj *o = nftnl_obj_alloc();

	if (!o)
		return MNL_CB_ERROR;
	if (nftnl_obj_nlmsg_parse(reply, o) == 0) {
		sum->packets += nftnl_obj_get_u64(o, NFTNL_OBJ_CTR_PKTS);
		sum->bytes += nftnl_obj_get_u64(o, NFTNL_OBJ_CTR_BYTES);
	}
	nftnl_obj_free(o);
	return MNL_CB_OK;
}

static int add_counter(
        struct nft *nft, uint32_t family, const char *name, struct fence_counters *sum)
{
	_Alignas(struct nlmsghdr) char request[NFT_REQUEST_BYTES];
	struct nlmsghdr *header =
	        nftnl_nlmsg_build_hdr(request, NFT_MSG_GETOBJ, (uint16_t)family, NLM_F_ACK, 0);

	mnl_attr_put_strz(header, NFTA_OBJ_TABLE, FENCE_TABLE);
	mnl_attr_put_strz(header, NFTA_OBJ_NAME, name);
	mnl_attr_put_u32(header, NFTA_OBJ_TYPE, htonl(NFT_OBJECT_COUNTER));
	return nft_query(nft, header, take_counter, sum);
}

static int count_packets(
        struct nft *nft, uint32_t family, const char *prefix, const char *interface, uint64_t *out)
{
	struct fence_counters one = {0};
	char name[FENCE_NAME_MAX];
	int rc = add_counter(nft, family, fence_name(name, prefix, interface), &one);

	*out = one.packets;
	return rc;
}

static int add_lost_between(struct nft *nft, const char *interface, struct fence_counters *sum)
{
	uint64_t passed = 0, received = 0;
	int rc = count_packets(nft, NFPROTO_NETDEV, FENCE_PASSED_PREFIX, interface, &passed);

	if (rc == 0)
		rc = count_packets(nft, NFPROTO_INET, FENCE_RECEIVED_PREFIX, interface, &received);
	if (rc == 0 && passed > received)
		sum->packets += passed - received;
	return rc == -ENOENT ? 0 : rc; /* a fence that an earlier version set has no such
	                                          counters */
}

int fence_counters_get(const char *interface, struct fence_counters *out)
{
	struct fence_counters sum = {0};
	char name[FENCE_NAME_MAX];
	struct nft nft;
	int rc;

	*out = sum;
	if (strnlen(interface, IFNAMSIZ) >= IFNAMSIZ)
		return -EINVAL;
	rc = nft_open(&nft);
	if (rc < 0)
		return rc;
	fence_name(name, FENCE_COUNTER_PREFIX, interface);
	rc = add_counter(&nft, NFPROTO_NETDEV, name, &sum);
	if (rc == 0)
		rc = add_counter(&nft, NFPROTO_INET, name, &sum);
	if (rc == 0)
		rc = add_lost_between(&nft, interface, &sum);
	if (rc == 0)
		rc = count_packets(
		        &nft, NFPROTO_INET, FENCE_CONNECTIONS_PREFIX, interface, &sum.connections);
	if (rc == 0)
		rc = count_packets(
		        &nft, NFPROTO_INET, FENCE_QUERIES_PREFIX, interface, &sum.queries);
	if (rc == 0)
		rc = count_packets(
		        &nft, NFPROTO_INET, FENCE_DATAGRAMS_PREFIX, interface, &sum.datagrams);
	nft_close(&nft);
	if (rc == 0)
		*out = sum;
	return rc;
}
