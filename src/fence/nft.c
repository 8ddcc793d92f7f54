/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Theory of operation: a batch is one datagram of messages between a "begin" and an "end". The
 * kernel processes it during the send and queues its answers before the send returns, so the
 * answers are read without waiting. There is one answer for each message that failed, and one for
 * the last message, which alone asks for an acknowledgment. Success is that acknowledgment and no
 * error.
 */
#include "fence/nft.h"

#include "vethguard/netlink/dump.h"

#include <arpa/inet.h>
#include <errno.h>
#include <libnftnl/common.h>
#include <libnftnl/gen.h>
#include <libnftnl/set.h>
#include <linux/netfilter/nf_tables.h>
#include <linux/netfilter/nfnetlink.h>
#include <stdlib.h>
#include <sys/socket.h>

#define REPLY_BYTES (64 * 1024) /* the kernel packs a dump into datagrams of at most 32 KiB */
#define SEND_BUFFER_BYTES (2 * NFT_BATCH_BYTES)

int nft_open(struct nft *nft)
{
	int size = SEND_BUFFER_BYTES;
	int rc;

	nft->sequence = 1;
	nft->socket = mnl_socket_open2(NETLINK_NETFILTER, SOCK_CLOEXEC);
	if (!nft->socket)
		return -errno;
	/* without privilege for "force" the ordinary limit has to do, and is enough for any batch
	 * built here */
	if (setsockopt(mnl_socket_get_fd(nft->socket), SOL_SOCKET, SO_SNDBUFFORCE, &size,
	            sizeof(size)) < 0)
		(void)setsockopt(
		        mnl_socket_get_fd(nft->socket), SOL_SOCKET, SO_SNDBUF, &size, sizeof(size));
	if (mnl_socket_bind(nft->socket, 0, MNL_SOCKET_AUTOPID) < 0) {
		rc = -errno;
		nft_close(nft);
		return rc;
	}
	return 0;
}

void nft_close(struct nft *nft)
{
	mnl_socket_close(nft->socket);
	nft->socket = NULL;
}

int nft_query(struct nft *nft, struct nlmsghdr *header, mnl_cb_t each, void *context)
{
	unsigned port = mnl_socket_get_portid(nft->socket);
	char *reply = malloc(REPLY_BYTES);
	int more = MNL_CB_OK, rc = 0;
	bool overtaken = false;
	ssize_t n;

	if (!reply)
		return -ENOMEM;
	header->nlmsg_seq = ++nft->sequence;
	if (mnl_socket_sendto(nft->socket, header, header->nlmsg_len) < 0)
		rc = -errno;
	while (rc == 0 && more > MNL_CB_STOP) {
		n = mnl_socket_recvfrom(nft->socket, reply, REPLY_BYTES);
		if (n < 0 && errno == EINTR)
			continue;
		if (n >= 0) {
			overtaken |= netlink_dump_overtaken(reply, (size_t)n);
			more = mnl_cb_run(reply, (size_t)n, header->nlmsg_seq, port,
			        overtaken ? NULL : each, context);
		}
		if (n < 0 || more < 0)
			rc = -errno;
	}
	free(reply);
	return rc == 0 && overtaken ? -EINTR : rc;
}

static int take_generation(const struct nlmsghdr *reply, void *context)
{
	struct nftnl_gen *gen = nftnl_gen_alloc();

	if (!gen)
		return MNL_CB_ERROR;
	if (nftnl_gen_nlmsg_parse(reply, gen) == 0)
		*(uint32_t *)context = nftnl_gen_get_u32(gen, NFTNL_GEN_ID);
	nftnl_gen_free(gen);
	return MNL_CB_OK;
}

int nft_generation(struct nft *nft, uint32_t *out)
{
	_Alignas(struct nlmsghdr) char
	        request[MNL_NLMSG_HDRLEN + MNL_ALIGN(sizeof(struct nfgenmsg))];
	struct nlmsghdr *header =
	        nftnl_nlmsg_build_hdr(request, NFT_MSG_GETGEN, AF_UNSPEC, NLM_F_ACK, 0);

	*out = 0;
	return nft_query(nft, header, take_generation, out);
}

static int take_table(const struct nlmsghdr *reply, void *context)
{
	(void)reply;
	*(bool *)context = true;
	return MNL_CB_OK;
}

int nft_has_table(struct nft *nft, uint32_t family, const char *name, bool *has)
{
	_Alignas(struct nlmsghdr) char request[NFT_REQUEST_BYTES];
	struct nlmsghdr *header =
	        nftnl_nlmsg_build_hdr(request, NFT_MSG_GETTABLE, (uint16_t)family, NLM_F_ACK, 0);
	int rc;

	*has = false;
	mnl_attr_put_strz(header, NFTA_TABLE_NAME, name);
	rc = nft_query(nft, header, take_table, has);
	return rc == -ENOENT ? 0 : rc;
}

struct each_element {
	int (*each)(struct nftnl_set_elem *element, void *context);
	void *context;
};

static int take_elements(const struct nlmsghdr *reply, void *context)
{
	const struct each_element *e = context;
	struct nftnl_set *s = nftnl_set_alloc();

	if (!s)
		return MNL_CB_ERROR;
	if (nftnl_set_elems_nlmsg_parse(reply, s) == 0)
		nftnl_set_elem_foreach(s, e->each, e->context);
	nftnl_set_free(s);
	return MNL_CB_OK;
}

int nft_each_element(struct nft *nft, uint32_t family, const char *table, const char *set,
        int (*each)(struct nftnl_set_elem *element, void *context), void *context)
{
	_Alignas(struct nlmsghdr) char request[NFT_REQUEST_BYTES];
	struct nlmsghdr *header =
	        nftnl_nlmsg_build_hdr(request, NFT_MSG_GETSETELEM, (uint16_t)family, NLM_F_DUMP, 0);

	mnl_attr_put_strz(header, NFTA_SET_ELEM_LIST_TABLE, table);
	mnl_attr_put_strz(header, NFTA_SET_ELEM_LIST_SET, set);
	return nft_query(nft, header, take_elements, &(struct each_element){each, context});
}

static void batch_close_message(struct nft_batch *b)
{
	if (b->open)
		b->len += MNL_ALIGN(b->open->nlmsg_len);
	b->open = NULL;
	if (b->len > NFT_BATCH_BYTES - NFT_MESSAGE_BYTES) {
		b->failed = true;
		b->len = 0; /* later messages overwrite it: nothing of a failed batch is sent */
	}
}

int nft_batch_init(struct nft_batch *b, struct nft *nft)
{
	struct nlmsghdr *begin;

	*b = (struct nft_batch){.nft = nft, .mem = calloc(1, NFT_BATCH_BYTES)};
	if (!b->mem)
		return -ENOMEM;
	begin = nftnl_batch_begin((char *)b->mem, ++nft->sequence);
	b->open = begin;
	return 0;
}

void nft_batch_fini(struct nft_batch *b)
{
	free(b->mem);
	b->mem = NULL;
}

void nft_batch_require_generation(struct nft_batch *b, uint32_t generation)
{
	mnl_attr_put_u32(b->open, NFNL_BATCH_GENID, htonl(generation));
}

struct nlmsghdr *nft_batch_message(
        struct nft_batch *b, uint16_t type, uint16_t family, uint16_t flags)
{
	batch_close_message(b);
	b->open = nftnl_nlmsg_build_hdr(
	        (char *)b->mem + b->len, type, family, flags, ++b->nft->sequence);
	return b->open;
}

struct outcome {
	uint32_t last; /* sequence number of the message that asked for an acknowledgment */
	bool done;
	int error;
};

static void take_outcome(const struct nlmsghdr *reply, struct outcome *o)
{
	const struct nlmsgerr *e = mnl_nlmsg_get_payload(reply);

	if (reply->nlmsg_type != NLMSG_ERROR ||
	        mnl_nlmsg_get_payload_len(reply) < sizeof(struct nlmsgerr))
		return;
	if (e->error && o->error == 0)
		o->error = e->error;
	if (!e->error && reply->nlmsg_seq == o->last)
		o->done = true;
}

static int batch_outcome(struct nft_batch *b, uint32_t last)
{
	struct outcome o = {.last = last};
	const struct nlmsghdr *reply;
	ssize_t n;
	int left;

	/* the batch was sent, so its memory can receive the answers */
	while ((n = recv(mnl_socket_get_fd(b->nft->socket), b->mem, NFT_BATCH_BYTES,
	                MSG_DONTWAIT)) > 0) {
		left = (int)n;
		for (reply = (const struct nlmsghdr *)b->mem; mnl_nlmsg_ok(reply, left);
		        reply = mnl_nlmsg_next(reply, &left))
			take_outcome(reply, &o);
	}
	if (o.error)
		return o.error;
	return o.done ? 0 : -EIO;
}

int nft_batch_send(struct nft_batch *b)
{
	uint32_t last = b->open->nlmsg_seq;

	b->open->nlmsg_flags |= NLM_F_ACK;
	batch_close_message(b);
	if (b->failed)
		return -ENOBUFS;
	b->open = nftnl_batch_end((char *)b->mem + b->len, ++b->nft->sequence);
	b->len += MNL_ALIGN(b->open->nlmsg_len);
	if (mnl_socket_sendto(b->nft->socket, b->mem, b->len) < 0)
		return -errno;
	return batch_outcome(b, last);
}
