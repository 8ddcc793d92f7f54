/* SPDX-License-Identifier: Apache-2.0 */
/* nft: one nf_tables netlink socket, one batch of changes at a time, and dumps. Private to fence/.
 */
#ifndef VETHGUARD_SRC_FENCE_NFT_H
#define VETHGUARD_SRC_FENCE_NFT_H

#include <libmnl/libmnl.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define NFT_BATCH_BYTES (256 * 1024)
#define NFT_MESSAGE_BYTES \
	(8 * 1024)            /* above the largest message: a set of FENCE_UDP_PORTS_MAX elements */
#define NFT_REQUEST_BYTES 512 /* one that asks: a header and a few names */

struct nftnl_set_elem;

struct nft {
	struct mnl_socket *socket;
	uint32_t sequence;
};

int nft_open(struct nft *nft);
void nft_close(struct nft *nft);
/* The generation of the namespace's rules: it changes with every change that anyone makes. 0 or
 * -errno. */
int nft_generation(struct nft *nft, uint32_t *out);
/* Sends the one request built at header and gives every reply to each. 0 or -errno; -EINTR: a dump
 * during which the rules were changed, of which each has had a part. */
int nft_query(struct nft *nft, struct nlmsghdr *header, mnl_cb_t each, void *context);
/* Gives every element of the set to each, which returns 0. 0; -ENOENT: no such set or table; or
 * -errno. */
int nft_each_element(struct nft *nft, uint32_t family, const char *table, const char *set,
        int (*each)(struct nftnl_set_elem *element, void *context), void *context);
/* *has: whether there is such a table; name is one of ours. 0 or -errno. */
int nft_has_table(struct nft *nft, uint32_t family, const char *name, bool *has);

/* A transaction: all of it happens, or none of it. Too much for the buffer sets the sticky failed.
 */
struct nft_batch {
	struct nft *nft;
	uint8_t *mem; /* owned */
	size_t len;
	struct nlmsghdr
	        *open; /* the message being built; its length is counted when the next one begins */
	bool failed;
};

int nft_batch_init(struct nft_batch *b, struct nft *nft);
void nft_batch_fini(struct nft_batch *b);
/* The next message, for the caller to put its attributes into; never NULL. */
struct nlmsghdr *nft_batch_message(
        struct nft_batch *b, uint16_t type, uint16_t family, uint16_t flags);
/* The transaction is refused with -ERESTART where the rules are no longer of this generation. Call
 * it first. */
void nft_batch_require_generation(struct nft_batch *b, uint32_t generation);
/* 0 when all of it was done, else -errno and nothing was. */
int nft_batch_send(struct nft_batch *b);

#endif
