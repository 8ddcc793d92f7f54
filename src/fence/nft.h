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
#define NFT_MESSAGE_BYTES (8 * 1024) /* the largest is a set of FENCE_UDP_PORTS_MAX elements */
#define NFT_REQUEST_BYTES 512        /* a query: a header and a few names */

struct nftnl_set_elem;

struct nft {
	struct mnl_socket *socket;
	uint32_t sequence;
};

int nft_open(struct nft *nft);
void nft_close(struct nft *nft);
/* The generation of the namespace's rules; it changes with every change by anybody. Returns 0 or
 * -errno. */
int nft_generation(struct nft *nft, uint32_t *out);
/* Sends the request built at header and passes every reply to each. Returns 0 or -errno; -EINTR:
 * the rules changed during a dump, of which each() got only a part. */
int nft_query(struct nft *nft, struct nlmsghdr *header, mnl_cb_t each, void *context);
/* Passes every element of the set to each, which returns 0. Returns 0; -ENOENT: no such set or
 * table; or another -errno. */
int nft_each_element(struct nft *nft, uint32_t family, const char *table, const char *set,
        int (*each)(struct nftnl_set_elem *element, void *context), void *context);
/* *has: the table exists; name is one of ours. Returns 0 or -errno. */
int nft_has_table(struct nft *nft, uint32_t family, const char *name, bool *has);

/* A transaction: all of it happens, or nothing. If it exceeds the buffer, the sticky failed is
 * set. */
struct nft_batch {
	struct nft *nft;
	uint8_t *mem; /* owned */
	size_t len;
	struct nlmsghdr
	        *open; /* the message being built; its length is added when the next one begins */
	bool failed;
};

int nft_batch_init(struct nft_batch *b, struct nft *nft);
void nft_batch_fini(struct nft_batch *b);
/* Begins the next message, for the caller to add attributes; never NULL. */
struct nlmsghdr *nft_batch_message(
        struct nft_batch *b, uint16_t type, uint16_t family, uint16_t flags);
/* The kernel refuses the transaction with -ERESTART if the rules have another generation. Call this
 * before anything else. */
void nft_batch_require_generation(struct nft_batch *b, uint32_t generation);
/* Returns 0 if all of it was done, else -errno and nothing was done. */
int nft_batch_send(struct nft_batch *b);

#endif
